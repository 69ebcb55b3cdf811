package portable

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
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
	Of    uint32 // as longAt counts
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

// fixed are the long places of a result beside its content, and perContent those of each
// part of that.
const (
	fixed      = 5
	perContent = 3
)

// longAt is a long place of a result, in an order of their own; ok is false beyond the last one.
func longAt(r *api.Result, of uint32) (l long, ok bool) {
	if of < fixed {
		out, errs := &r.Output.Stdout, &r.Output.Stderr
		return [fixed]long{{text: &out.Head}, {text: &out.Tail}, {text: &errs.Head}, {text: &errs.Tail}, {raw: (*[]byte)(&r.Structured), json: true}}[of], true
	}
	i, place := int64(of-fixed)/perContent, (of-fixed)%perContent
	if i >= int64(len(r.Content)) {
		return long{}, false
	}
	c := &r.Content[i]
	return [perContent]long{{text: &c.Text}, {raw: (*[]byte)(&c.JSON), json: true}, {raw: &c.Data}}[place], true
}

// Pieces are those of a result, in order, and as they are asked for.
func Pieces(r *api.Result) iter.Seq[Piece] {
	return func(yield func(Piece) bool) {
		short := *r
		short.Content = append([]api.Content{}, r.Content...) // an empty list is not null
		for of := range uint32(fixed + perContent*len(short.Content)) {
			l, _ := longAt(&short, of)
			if l.len() <= longBytes {
				continue
			}
			for piece := range l.take() {
				if !yield(Piece{Long: true, Of: of, Bytes: piece}) {
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

// Add takes the next piece, which it keeps; false is that there are more than most bytes, or
// more of JSON than mostJSON, which takes several times that to read.
func (j *Joiner) Add(p Piece, most, mostJSON int64) bool {
	if j.bytes += int64(len(p.Bytes)) + 64; j.bytes > most {
		return false
	}
	if !p.Long {
		j.json = append(j.json, p.Bytes...)
		return int64(len(j.json)) <= mostJSON
	}
	if j.longs == nil {
		j.longs = map[uint32][][]byte{}
	}
	j.longs[p.Of] = append(j.longs[p.Of], p.Bytes)
	return true
}

// read reads a result's JSON, whose lists have at most so many elements.
func read(raw []byte, most int64) (*api.Result, error) {
	if n := elements(raw); int64(n) > most {
		return nil, fmt.Errorf("the result's lists have %d elements, more than %d", n, most)
	}
	var r api.Result
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, fmt.Errorf("cannot read the result: %w", err)
	}
	if string(r.Structured) == "null" { // as JSON has a result without one
		r.Structured = nil
	}
	return &r, nil
}

// Result is what the pieces make, with at most so many elements in its lists. The joiner has
// none of them any more.
func (j *Joiner) Result(most int64) (*api.Result, error) {
	r, err := read(j.json, most)
	if err != nil {
		return nil, err
	}
	for of, pieces := range j.longs {
		place, ok := longAt(r, of)
		if !ok || place.len() > 0 {
			return nil, fmt.Errorf("the result has no place for its long part %d", of)
		}
		if place.join(pieces); place.json && !json.Valid(*place.raw) {
			return nil, fmt.Errorf("the result's long part %d is not JSON", of)
		}
	}
	*j = Joiner{}
	return r, nil
}

// MaxRefusal bounds the JSON of a refusal.
const MaxRefusal = 256 << 10

// WriteRefusal is the result of a call that is refused as JSON, for one message: of a long
// one without what its program has printed. nil is one that is too long all the same.
func WriteRefusal(r *api.Result) []byte {
	raw, err := json.Marshal(r)
	if len(raw) > MaxRefusal {
		short := *r
		short.Output, short.Content = api.Output{}, []api.Content{}
		short.Warnings = append(slices.Clone(r.Warnings), "what it has printed is too long to be sent")
		raw, err = json.Marshal(&short)
	}
	if err != nil || len(raw) > MaxRefusal {
		return nil
	}
	return raw
}

// ReadRefusal reads what WriteRefusal has written. A result that is not a refusal of the call
// is an error.
func ReadRefusal(raw []byte, call string) (*api.Result, error) {
	if len(raw) > MaxRefusal {
		return nil, fmt.Errorf("the refusal has %d bytes, more than %d", len(raw), MaxRefusal)
	}
	r, err := read(raw, MaxElements)
	if err == nil && (r.CallID != call || r.OK()) {
		err = fmt.Errorf("the result %q of the call %q is not a refusal of the call %q", r.Status, r.CallID, call)
	}
	return r, err
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

// WorkersEvents are what a worker says of a call. How it begins and ends is for its caller to
// say, and of turns a worker says nothing.
var WorkersEvents = []api.EventKind{
	api.EventStarted, api.EventProgress, api.EventOutput, api.EventLog, api.EventOverran, api.EventTimeout, api.EventReaped,
}
