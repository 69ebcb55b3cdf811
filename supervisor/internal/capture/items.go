package capture

import (
	"fmt"
	"mime"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/api"
)

func isText(c api.Content) bool { return c.Type == "text" }

// itemCost is about what a piece takes beside its bytes.
const itemCost = 256

// cost is what the limit is spent on: bytes, and for what is not text the piece
// itself, so that empty ones are not free; so for blocks of text.
func cost(c api.Content) int {
	if isText(c) && !c.Block {
		return len(c.Text)
	}
	return c.Bytes() + itemCost
}

// maxRunBytes bounds the texts that short ones are joined to until the end: a
// larger one would take long to grow.
const maxRunBytes = 256 << 10

// run is a stretch of text, or one piece that cannot be cut.
type run struct {
	item api.Content // the Text of a text is in text
	text []byte
	from int // where the text that is left begins
}

func (r *run) left() []byte { return r.text[r.from:] }

// Items is a sequence of content cut to a limit: head and tail, half of it
// each. Neighbouring texts are joined, at a cost that is linear in their length.
// It is not safe for concurrent use.
type Items struct {
	limit              int64
	half               int
	head, tail         []*run
	gone               int // of tail, from its front: dropped
	headCost, tailCost int
	headFull           bool
	seen               int64
	dropped            int64
	droppedValues      int
	largest            int    // of them, its size
	largestKind        string // and what it is
	spare              *run   // the last one that was dropped
}

// NewItems keeps at most limit bytes.
func NewItems(limit int64) *Items { return &Items{limit: limit, half: int(max(limit, 2) / 2)} }

// Add takes the next piece.
func (s *Items) Add(item api.Content) {
	s.seen += int64(item.Bytes())
	if s.headFull || !s.addHead(&item) {
		s.addTail(item)
	}
}

// addHead puts as much into the head as fits; unless that is all, item is the rest.
func (s *Items) addHead(item *api.Content) (all bool) {
	room := s.half - s.headCost
	if cost(*item) <= room {
		s.head = s.join(s.head, *item)
		s.headCost += cost(*item)
		return true
	}
	s.headFull = true
	if room -= cost(*item) - len(item.Text); !isText(*item) || room <= 0 {
		return false
	}
	kept := *item
	kept.Text = wholeEnd(item.Text[:room])
	s.head = s.join(s.head, kept)
	s.headCost += cost(kept)
	*item = api.Content{Type: "text", Text: item.Text[len(kept.Text):]}
	return false
}

func (s *Items) addTail(item api.Content) {
	s.tail = s.join(s.tail, item)
	s.tailCost += cost(item)
	for s.headCost+s.tailCost > 2*s.half {
		s.dropOldest(s.headCost + s.tailCost - 2*s.half)
	}
}

// dropOldest takes at least one and about excess bytes off the tail's front.
func (s *Items) dropOldest(excess int) {
	oldest := s.tail[s.gone]
	left := oldest.left()
	if isText(oldest.item) && len(left) > excess {
		dropped := len(left) - len(wholeStart(left[excess:]))
		oldest.from += dropped
		s.forget(dropped, dropped)
		return
	}
	s.shift()
	s.forget(cost(oldest.item)+len(left), oldest.item.Bytes()+len(left))
	if !isText(oldest.item) {
		s.forgetValue(oldest.item)
	}
	*oldest = run{text: oldest.text[:0]} // what is dropped must not stay reachable
	s.spare = oldest
}

// shift takes the tail's first off, and moves the others to the front once they
// are fewer than what is gone.
func (s *Items) shift() {
	s.tail[s.gone] = nil
	if s.gone++; 2*s.gone > len(s.tail) {
		s.tail, s.gone = slices.Delete(s.tail, 0, s.gone), 0
	}
}

func (s *Items) forgetValue(item api.Content) {
	if s.droppedValues++; s.droppedValues == 1 || item.Bytes() > s.largest {
		s.largest, s.largestKind = item.Bytes(), kindOf(item)
	}
}

func (s *Items) forget(cost, bytes int) {
	s.tailCost -= cost
	s.dropped += int64(bytes)
}

// join appends item, as part of the last run where both are texts, and short.
func (s *Items) join(runs []*run, item api.Content) []*run {
	if !isText(item) {
		return append(runs, s.begin(item, false))
	}
	if item.Text == "" && !item.Block {
		return runs
	}
	long := false
	if n := len(runs); n > 0 && !item.Block && isText(runs[n-1].item) {
		last := runs[n-1]
		if len(last.text)+len(item.Text) <= maxRunBytes {
			last.text = append(last.text, item.Text...)
			return runs
		}
		long = true // as long as the last one
	}
	text := item.Text
	item.Text = ""
	r := s.begin(item, long)
	r.text = append(r.text, text...)
	return append(runs, r)
}

// begin is a run without text, made of one that was dropped if it can be: where the
// text will be long, with the room that the dropped one's had.
func (s *Items) begin(item api.Content, long bool) *run {
	r := s.spare
	if s.spare = nil; r == nil {
		return &run{item: item}
	}
	if r.item = item; !long {
		r.text = nil
	}
	return r
}

// Kept returns what is left, texts joined; where something was dropped, a text
// in between says how much.
func (s *Items) Kept() []api.Content {
	if s.dropped == 0 {
		return merge(append(slices.Clip(s.head), s.tail[s.gone:]...))
	}
	gap := api.Content{Type: "text", Text: s.gap(), LeftOutBytes: s.dropped}
	return append(append(merge(s.head), gap), merge(s.tail[s.gone:])...)
}

// gap names the largest that was dropped whole: text shows by itself that some
// of it is missing.
func (s *Items) gap() string {
	if s.droppedValues == 0 {
		return fmt.Sprintf("[... %d bytes of output are left out here ...]", s.dropped)
	}
	what := fmt.Sprintf("%s of %d bytes", s.largestKind, s.largest)
	if more := s.droppedValues - 1; more > 0 {
		what += fmt.Sprintf(" and %d more that cannot be cut", more)
	}
	return fmt.Sprintf("[... %d bytes of output are left out here, with %s: a call keeps at most %d bytes (`output` sets that) ...]", s.dropped, what, s.limit)
}

// merge joins what join has left apart, in one step for each stretch of text.
func merge(runs []*run) []api.Content {
	out := []api.Content{}
	for len(runs) > 0 {
		first, n := runs[0].item, 1
		if isText(first) {
			for n < len(runs) && isText(runs[n].item) && !runs[n].item.Block {
				n++
			}
			first.Text = textOf(runs[:n])
		}
		out, runs = append(out, first), runs[n:]
	}
	return out
}

// textOf is the text of runs that are all text.
func textOf(runs []*run) string {
	size := 0
	for _, r := range runs {
		size += len(r.left())
	}
	var text strings.Builder
	text.Grow(size)
	for _, r := range runs {
		text.Write(r.left())
	}
	return text.String()
}

// Counts are the exact numbers of bytes.
func (s *Items) Counts() (seen, kept, dropped int64) {
	return s.seen, s.seen - s.dropped, s.dropped
}

// kindOf is the word for content that is not text.
func kindOf(c api.Content) string {
	switch c.Type {
	case "json":
		return "JSON"
	case "resource_link":
		return "a link"
	case "resource":
		return "a resource"
	}
	if kind, _, err := mime.ParseMediaType(c.MIMEType); err == nil && len(kind) <= maxKindBytes {
		return kind
	}
	return "a blob"
}

// maxKindBytes bounds what a tool can have said as the kind of a blob.
const maxKindBytes = 64
