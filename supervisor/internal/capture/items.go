package capture

import "fmt"

// Item is one piece of content: text, or something that cannot be cut.
type Item struct {
	// Text is set for text; others carry Value and their Size in bytes.
	Text  string
	Value any
	Size  int
	// Kind says what a Value is, to whoever does not get it.
	Kind string
	// DroppedBytes is set for the text of Kept that stands for what was dropped.
	DroppedBytes int64
}

func (i Item) isText() bool { return i.Value == nil }

// itemCost is about what an item takes beside its bytes.
const itemCost = 256

// cost is what the limit is spent on: bytes, and for what is no text the item
// itself, so that empty ones are not free.
func (i Item) cost() int {
	if i.isText() {
		return len(i.Text)
	}
	return i.Size + itemCost
}

func (i Item) bytes() int {
	if i.isText() {
		return len(i.Text)
	}
	return i.Size
}

// maxJoinedBytes bounds the text pieces that short texts are joined to.
const maxJoinedBytes = 16 << 10

// Items is a sequence of content cut to a limit: head and tail, half of it
// each. Neighbouring texts are joined. It is not safe for concurrent use.
type Items struct {
	limit              int64
	half               int
	head, tail         []Item
	headCost, tailCost int
	headFull           bool
	seen               int64
	dropped            int64
	droppedValues      int
	largest            Item // of them, its Kind and Size
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
		s.head = join(s.head, item)
		s.headCost += item.cost()
		return Item{}
	}
	s.headFull = true
	if !item.isText() {
		return item
	}
	kept := wholeEnd([]byte(item.Text[:room]))
	s.head = join(s.head, Item{Text: string(kept)})
	s.headCost += len(kept)
	return Item{Text: item.Text[len(kept):]}
}

func (s *Items) addTail(item Item) {
	s.tail = join(s.tail, item)
	s.tailCost += item.cost()
	for s.headCost+s.tailCost > 2*s.half {
		s.dropOldest(s.headCost + s.tailCost - 2*s.half)
	}
}

// dropOldest takes at least one and about excess bytes off the tail's front.
func (s *Items) dropOldest(excess int) {
	first := s.tail[0]
	if size := len(first.Text); first.isText() && size > excess {
		rest := wholeStart(first.Text[excess:])
		s.tail[0] = Item{Text: rest}
		s.forget(size-len(rest), size-len(rest))
		return
	}
	s.tail[0] = Item{} // what is dropped must not stay reachable
	s.tail = s.tail[1:]
	s.forget(first.cost(), first.bytes())
	if !first.isText() {
		s.forgetValue(first)
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

// join appends item, as part of the last one where both are short texts.
func join(items []Item, item Item) []Item {
	if item.isText() && item.Text == "" {
		return items
	}
	if n := len(items); n > 0 && item.isText() && items[n-1].isText() && len(items[n-1].Text) < maxJoinedBytes {
		items[n-1].Text += item.Text
		return items
	}
	return append(items, item)
}

// Kept returns what is left, texts joined; where something was dropped, a text
// in between says how much.
func (s *Items) Kept() []Item {
	head := merge(nil, s.head)
	if s.dropped == 0 {
		return merge(head, s.tail)
	}
	gap := Item{Text: s.gap(), DroppedBytes: s.dropped}
	return append(append(head, gap), merge(nil, s.tail)...)
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

// merge is join without a bound, for the last time that items are put together.
func merge(out, items []Item) []Item {
	for _, item := range items {
		if n := len(out); n > 0 && item.isText() && out[n-1].isText() {
			out[n-1].Text += item.Text
		} else {
			out = append(out, item)
		}
	}
	return out
}

// Counts are the exact numbers of bytes.
func (s *Items) Counts() (seen, kept, dropped int64) {
	return s.seen, s.seen - s.dropped, s.dropped
}
