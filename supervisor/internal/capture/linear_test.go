package capture

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
)

// Keeping output takes memory, and with it time, in proportion to its size,
// whatever the size of the pieces that it comes in.
func TestKeepingIsLinear(t *testing.T) {
	const size = 32 << 20
	for _, test := range []struct {
		name   string
		piece  string
		limit  int64
		values bool
	}{
		{name: "10 bytes", piece: strings.Repeat("x", 10), limit: 2 * size},
		{name: "10 bytes, half of them dropped", piece: strings.Repeat("x", 10), limit: size / 2},
		{name: "single characters", piece: "é", limit: 2 * size},
		{name: "16 KiB", piece: strings.Repeat("x", 16<<10), limit: 2 * size},
		{name: "16 KiB, half of them dropped", piece: strings.Repeat("é", 8<<10), limit: size / 2},
		{name: "1 MiB", piece: strings.Repeat("x", 1<<20), limit: 2 * size},
		{name: "texts between values", piece: strings.Repeat("x", 1<<10), limit: 2 * size, values: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			allocated := allocatedBy(func() {
				s := NewItems(test.limit)
				for n := 0; n < size; n += len(test.piece) {
					s.Add(text(test.piece))
					if test.values {
						s.Add(value(1))
					}
				}
				kept := s.Kept()
				if !test.values && len(kept) > 3 {
					t.Errorf("%d items", len(kept))
				}
			})
			if most := uint64(16 * size); allocated > most {
				t.Errorf("%d bytes were allocated for %d of output", allocated, size)
			}
		})
	}
	// What drops nearly all of a flood needs no memory for it.
	for _, piece := range []string{"x", strings.Repeat("x", 4<<10), strings.Repeat("é", 100<<10)} {
		allocated := allocatedBy(func() {
			s := NewItems(1 << 20)
			for n := 0; n < size; n += len(piece) {
				s.Add(text(piece))
			}
		})
		if most := uint64(size / 4); allocated > most {
			t.Errorf("a flood by %d: %d bytes were allocated for %d of output", len(piece), allocated, size)
		}
	}
	for _, piece := range []int{1, 1 << 10, 64 << 10} {
		chunk := bytes.Repeat([]byte("x"), piece)
		allocated := allocatedBy(func() {
			s := NewStream(size, nil)
			for n := 0; n < size*3/2; n += piece {
				s.Write(chunk)
			}
			s.Kept()
		})
		if most := uint64(16 * size); allocated > most {
			t.Errorf("a stream by %d: %d bytes were allocated for %d of output", piece, allocated, size)
		}
	}
}

func allocatedBy(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
