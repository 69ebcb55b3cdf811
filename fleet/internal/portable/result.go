package portable

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/toolhost/toolhost/api"
)

const (
	// longBytes is what leaves the JSON of a result: to quote it and to read it again would
	// cost more than its way.
	longBytes = 4 << 10
	// pieceBytes is how much of a result goes in one message.
	pieceBytes = 128 << 10
)

// Piece is a part of a result on the wire: of its JSON, or of something long that stands
// empty there.
type Piece struct {
	Long  bool
	Of    uint32 // as longs counts
	Bytes []byte
	Last  bool
}

// long is a place of a result that may hold many bytes; text or raw is set.
type long struct {
	text *string
	raw  *[]byte
	json bool // raw is
}

func (l long) len() int {
	if l.text != nil {
		return len(*l.text)
	}
	return len(*l.raw)
}

// longs are a result's, in an order of their own.
func longs(r *api.Result) []long {
	out, errs := &r.Output.Stdout, &r.Output.Stderr
	list := []long{{text: &out.Head}, {text: &out.Tail}, {text: &errs.Head}, {text: &errs.Tail}, {raw: (*[]byte)(&r.Structured), json: true}}
	for i := range r.Content {
		c := &r.Content[i]
		list = append(list, long{text: &c.Text}, long{raw: (*[]byte)(&c.JSON), json: true}, long{raw: &c.Data})
	}
	return list
}

// Pieces are those of a result, in order, and as they are asked for.
func Pieces(r *api.Result) iter.Seq[Piece] {
	return func(yield func(Piece) bool) {
		short := *r
		short.Content = append([]api.Content(nil), r.Content...)
		for of, l := range longs(&short) {
			if l.len() <= longBytes {
				continue
			}
			for piece := range l.take() {
				if !yield(Piece{Long: true, Of: uint32(of), Bytes: piece}) {
					return
				}
			}
		}
		raw, err := json.Marshal(&short)
		if err != nil {
			raw = []byte("null") // a bug; the caller says that the result cannot be read
		}
		for len(raw) > pieceBytes {
			if !yield(Piece{Bytes: raw[:pieceBytes]}) {
				return
			}
			raw = raw[pieceBytes:]
		}
		yield(Piece{Bytes: raw, Last: true})
	}
}

// take empties the place, piece by piece.
func (l long) take() iter.Seq[[]byte] {
	text, raw := "", []byte(nil)
	if l.text != nil {
		text, *l.text = *l.text, ""
	} else {
		raw, *l.raw = *l.raw, nil
	}
	return func(yield func([]byte) bool) {
		for n := 0; len(text) > 0; text = text[n:] {
			if n = min(len(text), pieceBytes); !yield([]byte(text[:n])) {
				return
			}
		}
		for n := 0; len(raw) > 0; raw = raw[n:] {
			if n = min(len(raw), pieceBytes); !yield(raw[:n]) {
				return
			}
		}
	}
}

// Joiner puts a result together from its pieces. The zero value has none.
type Joiner struct {
	json  []byte
	longs map[uint32][][]byte
	bytes int64
}

// Add takes the next piece, which it keeps; false is that there are more than most bytes.
func (j *Joiner) Add(p Piece, most int64) bool {
	if j.bytes += int64(len(p.Bytes)) + 64; j.bytes > most {
		return false
	}
	if !p.Long {
		j.json = append(j.json, p.Bytes...)
		return true
	}
	if j.longs == nil {
		j.longs = map[uint32][][]byte{}
	}
	j.longs[p.Of] = append(j.longs[p.Of], p.Bytes)
	return true
}

// Result is what the pieces make. The joiner has none of them any more.
func (j *Joiner) Result() (*api.Result, error) {
	var r api.Result
	if err := json.Unmarshal(j.json, &r); err != nil {
		return nil, fmt.Errorf("cannot read the result: %w", err)
	}
	if string(r.Structured) == "null" { // as JSON has a result without one
		r.Structured = nil
	}
	places := longs(&r)
	for of, pieces := range j.longs {
		if int64(of) >= int64(len(places)) || places[of].len() > 0 {
			return nil, fmt.Errorf("the result has no place for its long part %d", of)
		}
		if places[of].join(pieces); places[of].json && !json.Valid(*places[of].raw) {
			return nil, fmt.Errorf("the result's long part %d is not JSON", of)
		}
	}
	*j = Joiner{}
	return &r, nil
}

func (l long) join(pieces [][]byte) {
	size := 0
	for _, p := range pieces {
		size += len(p)
	}
	if l.raw != nil {
		*l.raw = make([]byte, 0, size)
		for _, p := range pieces {
			*l.raw = append(*l.raw, p...)
		}
		return
	}
	var b strings.Builder
	b.Grow(size)
	for _, p := range pieces {
		b.Write(p)
	}
	*l.text = b.String()
}
