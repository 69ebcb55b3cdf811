package redact

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// Text and secrets made to be slow for what tries each place anew.
func worst() (*Set, []byte) {
	s, err := New(bytes.Repeat([]byte("a"), MaxBytes), []byte(strings.Repeat("a", MaxBytes-1)+"b"), []byte(strings.Repeat("a", MaxBytes/2)+"c"))
	if err != nil {
		panic(err)
	}
	return s, bytes.Repeat([]byte(strings.Repeat("a", MaxBytes-2)+"x"), 64)
}

// The steps of the machine are what the time goes into: at most two for a byte,
// each of them down to a child or up to a suffix.
func TestLinear(t *testing.T) {
	s, text := worst()
	machine, at, steps := s.machine, int32(0), 0
	for _, letter := range text {
		for node := at; node != 0 && machine.childOf(node, letter) == 0; node = machine.nodes[node].fail {
			steps++
		}
		steps++
		at = machine.next(at, letter)
	}
	if steps > 2*len(text) {
		t.Errorf("%d steps for %d bytes", steps, len(text))
	}
	// Every place ends an occurrence of the first: one span in the end.
	if got := s.Bytes(bytes.Repeat([]byte("a"), 1<<20)); string(got) != Replacement {
		t.Errorf("%.100q", got)
	}
}

func BenchmarkBytes(b *testing.B) {
	s := set(b, "hunter22", "sk-ant-0123456789abcdef0123456789abcdef", "correct horse battery staple")
	text := []byte(strings.Repeat("src/main.go:12:\tif err := run(ctx, os.Args[1:]); err != nil { return err }\n", 1<<20/75))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		s.Bytes(text)
	}
}

func BenchmarkStream(b *testing.B) {
	slow, worst := worst()
	for _, bench := range []struct {
		name  string
		set   *Set
		text  []byte
		piece int
	}{
		{"none", nil, bytes.Repeat([]byte("x"), 1<<20), 32 << 10},
		{"text", set(b, "hunter22", "sk-ant-0123456789abcdef0123456789abcdef", "correct horse battery staple"), bytes.Repeat([]byte("if err := run(ctx, os.Args[1:]); err != nil\n"), 1<<20/44), 32 << 10},
		{"worst", slow, worst, 32 << 10},
		{"worst by the byte", slow, worst, 1},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.SetBytes(int64(len(bench.text)))
			for b.Loop() {
				stream := bench.set.NewStream()
				for rest := bench.text; len(rest) > 0; {
					n := min(len(rest), bench.piece)
					stream.Write(rest[:n])
					rest = rest[n:]
				}
				stream.Close()
			}
		})
	}
}

func BenchmarkNew(b *testing.B) {
	secret := []byte(fmt.Sprintf("%0*d", 3200, 7))
	for b.Loop() {
		if _, err := New(secret); err != nil {
			b.Fatal(err)
		}
	}
}
