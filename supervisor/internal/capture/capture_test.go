package capture

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/toolhost/toolhost/api"
)

func TestStreamKeepsHeadAndTail(t *testing.T) {
	for _, test := range []struct {
		name, in, head, tail string
		dropped              int64
	}{
		{"all", "0123456789", "0123456789", "", 0},
		{"one over", "0123456789x", "01234", "6789x", 1},
		{"twice", "abcdefghijklmnopqrst", "abcde", "pqrst", 10},
		{"characters stay whole", "aaaaéxxxxxxxxéaaaa", "aaaa", "aaaa", 12},
	} {
		for _, chunk := range []int{1, 3, 100} {
			s := NewStream(10, nil)
			for rest := []byte(test.in); len(rest) > 0; {
				n := min(chunk, len(rest))
				s.Write(rest[:n])
				rest = rest[n:]
			}
			k := s.Kept()
			if k.Head != test.head || k.Tail != test.tail || k.DroppedBytes != test.dropped || k.SeenBytes != int64(len(test.in)) || k.KeptBytes != int64(len(k.Head+k.Tail)) {
				t.Errorf("%s by %d: %+v", test.name, chunk, k)
			}
		}
	}
}

// Whatever is written in whatever pieces, the counts are exact, memory is
// bounded, and head and tail are those of the whole.
func FuzzStream(f *testing.F) {
	f.Add([]byte("hello, world"), uint16(8), uint64(1))
	f.Add(bytes.Repeat([]byte("é"), 100), uint16(31), uint64(2))
	f.Fuzz(func(t *testing.T, in []byte, limit uint16, seed uint64) {
		s := NewStream(int64(limit), nil)
		random := rand.New(rand.NewPCG(seed, 0))
		for rest := in; len(rest) > 0; {
			n := 1 + random.IntN(len(rest))
			s.Write(rest[:n])
			rest = rest[n:]
		}
		k := s.Kept()
		half := max(int(limit), 2) / 2
		if k.SeenBytes != int64(len(in)) || k.KeptBytes+k.DroppedBytes != k.SeenBytes || k.KeptBytes > int64(2*half) {
			t.Fatalf("limit %d: %+v", limit, k)
		}
		if !utf8.ValidString(k.Head) || !utf8.ValidString(k.Tail) {
			t.Fatalf("not UTF-8: %q %q", k.Head, k.Tail)
		}
		if utf8.Valid(in) && k.KeptBytes != int64(len(k.Head+k.Tail)) {
			t.Fatalf("kept %d bytes, but %q and %q are shown", k.KeptBytes, k.Head, k.Tail)
		}
		if k.DroppedBytes == 0 && k.Head != strings.ToValidUTF8(string(in), "\uFFFD") {
			t.Fatalf("all was kept, but head is %q of %q", k.Head, in)
		}
	})
}

func TestSpillHoldsTheWholeStream(t *testing.T) {
	spills := OpenSpills(t.TempDir(), -1)
	defer spills.Close()
	file := spills.File("stdout", 8)
	s, path := NewStream(4, file), file.path()
	for _, chunk := range []string{"01", "23", "45", "6", "789"} {
		s.Write([]byte(chunk))
	}
	k := s.Kept()
	s.Close()
	raw, err := os.ReadFile(path)
	if err != nil || string(raw) != "01234567" || k.SpillPath != path || !strings.Contains(k.SpillError, "limit of 8 bytes") {
		t.Errorf("file %q, %v; kept %+v", raw, err, k)
	}
}

func TestSpillThatCannotBeMadeLosesNothingElse(t *testing.T) {
	s := NewStream(4, OpenSpills("/proc/nonexistent", -1).File("stderr", 8))
	s.Write([]byte("0123456789"))
	if k := s.Kept(); k.Head != "01" || k.Tail != "89" || k.SpillError == "" {
		t.Errorf("%+v", k)
	}
}

// text and value are pieces of content: one that can be cut, and one that cannot.
func text(s string) api.Content { return api.Content{Type: "text", Text: s} }

func value(size int) api.Content { return api.Content{Type: "blob", Data: make([]byte, size)} }

func texts(items []api.Content) (out []string) {
	for _, i := range items {
		out = append(out, i.Text)
	}
	return out
}

// One large item that fits the limit is kept, though half of it would not do.
func TestItemsKeepOneThatFits(t *testing.T) {
	s := NewItems(10_000)
	s.Add(text("head"))
	s.Add(value(9_000))
	if _, kept, dropped := s.Counts(); kept != 9_004 || dropped != 0 || len(s.Kept()) != 2 {
		t.Errorf("kept %d, dropped %d", kept, dropped)
	}
}

// Empty items are not free.
func TestItemsCost(t *testing.T) {
	s := NewItems(10_000)
	for range 100_000 {
		s.Add(value(0))
	}
	if n := len(s.Kept()); n > 10_000/itemCost+1 {
		t.Errorf("%d empty items are kept", n)
	}
}

func TestItemsJoinTexts(t *testing.T) {
	s := NewItems(1000)
	s.Add(text("a"))
	s.Add(text("b"))
	s.Add(value(3))
	s.Add(text("c"))
	if got := s.Kept(); len(got) != 3 || got[0].Text != "ab" || len(got[1].Data) != 3 || got[2].Text != "c" {
		t.Errorf("%+v", got)
	}
}

func TestItemsSayWhatIsLeftOut(t *testing.T) {
	s := NewItems(10)
	for range 10 {
		s.Add(text("0123456789"))
	}
	seen, kept, dropped := s.Counts()
	got := texts(s.Kept())
	if seen != 100 || kept != 10 || dropped != 90 || len(got) != 3 || got[0] != "01234" || got[2] != "56789" || !strings.Contains(got[1], "90 bytes") {
		t.Errorf("seen %d, kept %d, dropped %d: %q", seen, kept, dropped, got)
	}
}

// What is dropped whole is named, the largest of it: nothing else tells of it.
func TestItemsNameWhatIsLeftOutWhole(t *testing.T) {
	s := NewItems(1000)
	s.Add(text("before"))
	s.Add(api.Content{Type: "blob", MIMEType: "image/png", Data: make([]byte, 1091)})
	s.Add(text("after"))
	got := s.Kept()
	want := "[... 1100 bytes of output are left out here, with image/png of 1100 bytes: a call keeps at most 1000 bytes (`output` sets that) ...]"
	if len(got) != 3 || got[0].Text != "before" || got[1].Text != want || got[1].LeftOutBytes != 1100 || got[2].Text != "after" {
		t.Errorf("%+v", got)
	}
	s.Add(api.Content{Type: "json", JSON: make([]byte, 2000)})
	s.Add(api.Content{Type: "resource_link", URI: strings.Repeat("x", 900)})
	if got := s.Kept()[1].Text; !strings.Contains(got, "4005 bytes of output are left out here, with JSON of 2000 bytes and 2 more that cannot be cut: ") {
		t.Errorf("%q", got)
	}
}

func FuzzItems(f *testing.F) {
	f.Add("some text", uint8(7), uint16(20), uint8(30))
	f.Fuzz(func(t *testing.T, piece string, size uint8, limit uint16, n uint8) {
		s := NewItems(int64(limit))
		total := int64(0)
		for i := range int(n) {
			item := text(strings.ToValidUTF8(piece, "?"))
			if i%3 == 2 {
				item = value(int(size) + 1)
			}
			total += int64(item.Bytes())
			s.Add(item)
		}
		seen, kept, dropped := s.Counts()
		if seen != total || kept+dropped != seen || kept > max(int64(limit), 2) {
			t.Fatalf("seen %d of %d, kept %d, dropped %d, limit %d", seen, total, kept, dropped, limit)
		}
		for _, item := range s.Kept() {
			if !utf8.ValidString(item.Text) {
				t.Fatalf("not UTF-8: %q", item.Text)
			}
		}
	})
}

// Texts that are blocks stay apart, with what goes with them, also where some of them
// are cut.
func TestBlocksOfText(t *testing.T) {
	items := NewItems(1 << 20)
	for _, item := range []api.Content{{Type: "text", Text: "a", Block: true, Extra: json.RawMessage("{}")}, text("b"), {Type: "text", Block: true}, {Type: "text", Text: "c", Block: true}, text("d")} {
		items.Add(item)
	}
	kept := items.Kept()
	if len(kept) != 3 || kept[0].Text != "ab" || string(kept[0].Extra) != "{}" || kept[1].Text != "" || !kept[1].Block || kept[2].Text != "cd" {
		t.Errorf("%+v", kept)
	}
	small := NewItems(2000)
	for range 100 {
		small.Add(api.Content{Type: "text", Text: "0123456789", Block: true})
	}
	seen, left, dropped := small.Counts()
	kept = small.Kept()
	if seen != 1000 || left+dropped != seen || dropped == 0 || len(kept) > 9 || kept[0].Text != "0123456789" {
		t.Errorf("seen %d, kept %d, dropped %d in %d items", seen, left, dropped, len(kept))
	}
}
