package capture

import (
	"fmt"
	"slices"
	"strings"
)

// Item is one piece of content: text, or something that cannot be cut.
type Item struct {
	// Text is set for text; others carry Value and their Size in bytes.
	Text  string
	Value any
	Size  int
	// Kind says what a Value is, for readers that do not get it.
	Kind string
	// Block: the text is not the rest of the one before it. Extra goes with it.
	Block bool
	Extra any
	// DroppedBytes is set for the text of Kept that stands for what was dropped.
	DroppedBytes int64
}

func (i Item) isText() bool { return i.Value == nil }

// itemCost is about what an item takes beside its bytes.
const itemCost = 256

// cost is what the limit is spent on: bytes, and for what is not text the item
// itself, so that empty ones are not free; so for blocks of text.
func (i Item) cost() int {
	if i.isText() && !i.Block {
		return len(i.Text)
	}
	return i.bytes() + itemCost
}

func (i Item) bytes() int {
	if i.isText() {
		return len(i.Text)
	}
	return i.Size
}

// maxRunBytes bounds the texts that short ones are joined to until the end: a
// larger one would take long to grow.
const maxRunBytes = 256 << 10

// run is a stretch of text, or one item that cannot be cut.
type run struct {
	item Item // its Value is nil for text
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
	headCost, tailCost int
	headFull           bool
	seen               int64
	dropped            int64
	droppedValues      int
	largest            Item   // of them, its Kind and Size
	spare              []byte // what a text that was dropped was in
}

// NewItems keeps at most limit bytes.
func NewItems(limit int64) *Items { return &Items{limit: limit, half: int(max(limit, 2) / 2)} }

// Add takes the next piece.
func (s *Items) Add(item Item) {
	s.seen += int64(item.bytes())
	if !s.headFull {
		item = s.addHead(item)
	}
	if item.cost() > 0 {
		s.addTail(item)
	}
}

// addHead puts as much into the head as fits and returns the rest.
func (s *Items) addHead(item Item) (rest Item) {
	room := s.half - s.headCost
	if item.cost() <= room {
		s.head = s.join(s.head, item)
		s.headCost += item.cost()
		return Item{}
	}
	s.headFull = true
	if room -= item.cost() - len(item.Text); !item.isText() || room <= 0 {
		return item
	}
	kept := item
	kept.Text = wholeEnd(item.Text[:room])
	s.head = s.join(s.head, kept)
	s.headCost += kept.cost()
	return Item{Text: item.Text[len(kept.Text):]}
}

func (s *Items) addTail(item Item) {
	s.tail = s.join(s.tail, item)
	s.tailCost += item.cost()
	for s.headCost+s.tailCost > 2*s.half {
		s.dropOldest(s.headCost + s.tailCost - 2*s.half)
	}
}

// dropOldest takes at least one and about excess bytes off the tail's front.
func (s *Items) dropOldest(excess int) {
	oldest := s.tail[0]
	left := oldest.left()
	if oldest.item.isText() && len(left) > excess {
		dropped := len(left) - len(wholeStart(left[excess:]))
		oldest.from += dropped
		s.forget(dropped, dropped)
		return
	}
	s.tail[0] = nil // what is dropped must not stay reachable
	s.tail = s.tail[1:]
	s.forget(oldest.item.cost()+len(left), oldest.item.bytes()+len(left))
	if !oldest.item.isText() {
		s.forgetValue(oldest.item)
	} else {
		s.spare = oldest.text
	}
}

func (s *Items) forgetValue(item Item) {
	if s.droppedValues++; s.droppedValues == 1 || item.Size > s.largest.Size {
		s.largest = Item{Kind: item.Kind, Size: item.Size}
	}
}

func (s *Items) forget(cost, bytes int) {
	s.tailCost -= cost
	s.dropped += int64(bytes)
}

// join appends item, as part of the last run where both are texts, and short.
func (s *Items) join(runs []*run, item Item) []*run {
	if !item.isText() {
		return append(runs, &run{item: item})
	}
	if item.Text == "" && !item.Block {
		return runs
	}
	var room []byte
	if n := len(runs); n > 0 && !item.Block && runs[n-1].item.isText() {
		if last := runs[n-1]; len(last.text)+len(item.Text) <= maxRunBytes {
			last.text = append(last.text, item.Text...)
			return runs
		}
		room, s.spare = s.spare[:0], nil // it will be as long as the last one
	}
	text := append(room, item.Text...)
	item.Text = ""
	return append(runs, &run{item: item, text: text})
}

// Kept returns what is left, texts joined; where something was dropped, a text
// in between says how much.
func (s *Items) Kept() []Item {
	if s.dropped == 0 {
		return merge(append(slices.Clip(s.head), s.tail...))
	}
	gap := Item{Text: s.gap(), DroppedBytes: s.dropped}
	return append(append(merge(s.head), gap), merge(s.tail)...)
}

// gap names the largest that was dropped whole: text shows by itself that some
// of it is missing.
func (s *Items) gap() string {
	if s.droppedValues == 0 {
		return fmt.Sprintf("[... %d bytes of output are left out here ...]", s.dropped)
	}
	what := fmt.Sprintf("%s of %d bytes", s.largest.Kind, s.largest.Size)
	if more := s.droppedValues - 1; more > 0 {
		what += fmt.Sprintf(" and %d more that cannot be cut", more)
	}
	return fmt.Sprintf("[... %d bytes of output are left out here, with %s: a call keeps at most %d bytes (`output` sets that) ...]", s.dropped, what, s.limit)
}

// merge joins what join has left apart, in one step for each stretch of text.
func merge(runs []*run) (out []Item) {
	for len(runs) > 0 {
		n := 1
		for n < len(runs) && runs[n].item.isText() && !runs[n].item.Block {
			n++
		}
		first := runs[0].item
		if !first.isText() {
			out, runs = append(out, first), runs[1:]
			continue
		}
		out, runs = append(out, Item{Text: textOf(runs[:n]), Block: first.Block, Extra: first.Extra}), runs[n:]
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
