package wirejson

import (
	"bytes"
	"cmp"
	"encoding/json"
	"hash/maphash"
	"slices"
)

// keys are those of the objects that are open. A key takes 24 bytes, however
// long it is.
type keys struct {
	all  []key
	from []int // where those of each object begin
	seed maphash.Seed
}

// key is where a key stands, without its quotes.
type key struct {
	hash     uint64
	from, to int
}

func (k *keys) begin() {
	if k.from == nil {
		k.seed = maphash.MakeSeed()
	}
	k.from = append(k.from, len(k.all))
}

func (k *keys) add(raw []byte, from, to int, plain bool) {
	text := raw[from:to]
	if !plain {
		text = unescaped(text)
	}
	k.all = append(k.all, key{maphash.Bytes(k.seed, text), from, to})
}

// end ends the innermost object and finds a key that it has twice.
func (k *keys) end(raw []byte) (name []byte, twice bool) {
	last := len(k.from) - 1
	own := k.all[k.from[last]:]
	k.all, k.from = k.all[:k.from[last]], k.from[:last]
	slices.SortFunc(own, func(a, b key) int { return cmp.Compare(a.hash, b.hash) })
	for i := 1; i < len(own); i++ {
		if own[i].hash != own[i-1].hash {
			continue
		}
		one, other := unescaped(raw[own[i-1].from:own[i-1].to]), unescaped(raw[own[i].from:own[i].to])
		if bytes.Equal(one, other) {
			return one, true
		}
	}
	return nil, false
}

// unescaped is what a string means; half a surrogate pair is U+FFFD.
func unescaped(text []byte) []byte {
	if bytes.IndexByte(text, '\\') < 0 {
		return text
	}
	var meant string
	_ = json.Unmarshal(slices.Concat([]byte{'"'}, text, []byte{'"'}), &meant) // it has been read
	return []byte(meant)
}
