package httpapi

import (
	"bytes"
	"errors"
	"net/http/httptest"
	"testing"
)

// A feed is bounded in events and in bytes, and always holds the newest.
func TestFeedIsBounded(t *testing.T) {
	for size, want := range map[int]int{10: maxFeed, 1 << 20: maxFeedBytes >> 20, maxFeedBytes + 1: 1} {
		f := newFeed()
		json := bytes.Repeat([]byte("x"), size)
		for seq := range int64(maxFeed + 100) {
			f.add(event{seq: seq + 1, json: json})
		}
		held := 0
		for _, e := range f.events {
			held += len(e.json)
		}
		if n := len(f.events); n > want || n < want/2 || held != f.bytes {
			t.Errorf("%d events of %d bytes are held, at most %d are wanted; %d bytes, counted as %d", n, size, want, held, f.bytes)
		}
		p := f.after(0)
		if p.last != maxFeed+100 || p.first != p.last-int64(len(f.events))+1 {
			t.Errorf("events %d to %d", p.first, p.last)
		}
		if p = f.after(p.last - 1); len(p.events) != 1 || p.events[0].seq != p.last {
			t.Errorf("the newest: %+v", p)
		}
	}
}

// However large events are, a reader is given little at once, in order, and all
// of it in the end.
func TestPagesAreBounded(t *testing.T) {
	for _, size := range []int{10, 16 << 10, feedPageBytes, feedPageBytes + 1} {
		f := newFeed()
		for seq := range int64(40) {
			f.add(event{seq: seq + 1, json: bytes.Repeat([]byte("x"), size)})
		}
		for seq := int64(0); seq < 40; {
			p, held := f.after(seq), 0
			for _, e := range p.events {
				if seq++; e.seq != seq {
					t.Fatalf("event %d, want %d", e.seq, seq)
				}
				held += len(e.json)
			}
			if n := len(p.events); n == 0 || n > feedPage || n > 1 && held > feedPageBytes {
				t.Fatalf("%d events of %d bytes are given at once", n, size)
			}
		}
	}
}

// Who is sent away for a while is told for how long.
func TestRetryAfter(t *testing.T) {
	for code, want := range map[string]string{codeUnready: retryAfter, codeBusy: retryAfter, codeNotFound: ""} {
		w := httptest.NewRecorder()
		fail(w, httptest.NewRequest("GET", "/", nil), errors.Join(refuse(code, "x", "y")))
		if got := w.Header().Get("Retry-After"); got != want {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
}
