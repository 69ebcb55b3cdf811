package protocol

import (
	"io"
	"maps"
	"slices"
	"strings"
)

// marker begins each line that the testing package itself writes under -test.v=test2json,
// so that no output of a test or of its children can hide or forge one.
const marker = 0x16

// noTest says that the output that follows belongs to no test: it comes after each test and says nothing to a reader.
const noTest = "=== NAME  "

// maxLineBytes bounds the memory for one line of the testing package.
const maxLineBytes = 4096

// Tally counts the outcomes in the output of a test binary run with -test.v=test2json, and passes that output on without
// the markers. It is for one writer at a time.
type Tally struct {
	out      io.Writer
	line     []byte
	inLine   bool              // between a marker and the end of its line
	outcomes map[string]string // test name to PASS, SKIP or FAIL
}

// NewTally passes output on to out.
func NewTally(out io.Writer) *Tally {
	return &Tally{out: out, outcomes: map[string]string{}}
}

// Write implements io.Writer.
func (t *Tally) Write(p []byte) (int, error) {
	shown := make([]byte, 0, len(p))
	for _, c := range p {
		shown = t.scan(c, shown)
	}
	if _, err := t.out.Write(shown); err != nil {
		return 0, err
	}
	return len(p), nil
}

// scan appends what is to be shown: other output at once, the testing package's own lines when they are whole.
func (t *Tally) scan(c byte, shown []byte) []byte {
	switch {
	case c == marker:
		t.inLine, t.line = true, t.line[:0]
	case !t.inLine:
		shown = append(shown, c)
	case c == '\n':
		t.inLine = false
		t.note(string(t.line))
		if string(t.line) != noTest {
			shown = append(append(shown, t.line...), c)
		}
	case len(t.line) < maxLineBytes:
		t.line = append(t.line, c)
	}
	return shown
}

// note reads a line such as "--- PASS: TestX/case (0.00s)". Of a benchmark there is such a line only if it was skipped or
// failed, without a time; one that was begun and says no more has passed, or the binary's exit tells.
func (t *Tally) note(line string) {
	if name, ok := strings.CutPrefix(line, "=== RUN   "); ok && strings.HasPrefix(name, "Benchmark") {
		t.outcomes[name] = "PASS"
		return
	}
	rest, ok := strings.CutPrefix(line, "--- ")
	if !ok {
		return
	}
	outcome, rest, ok := strings.Cut(rest, ": ")
	name, _, timed := strings.Cut(rest, " (")
	if ok && (timed || strings.HasPrefix(name, "Benchmark")) && outcome != "BENCH" {
		t.outcomes[name] = outcome
	}
}

// Result counts the leaves among the tests seen so far.
func (t *Tally) Result(pkg string, exit int) Result {
	r := Result{Package: pkg, Exit: exit}
	for _, outcome := range t.leaves() {
		switch outcome {
		case "PASS":
			r.Passed++
		case "SKIP":
			r.Skipped++
		case "FAIL":
			r.Failed++
		}
	}
	return r
}

// Skipped names the leaves that were skipped, sorted.
func (t *Tally) Skipped() []string {
	leaves := t.leaves()
	maps.DeleteFunc(leaves, func(_, outcome string) bool { return outcome != "SKIP" })
	return slices.Sorted(maps.Keys(leaves))
}

func (t *Tally) leaves() map[string]string {
	leaves := maps.Clone(t.outcomes)
	for name := range t.outcomes {
		for i, c := range name {
			if c == '/' && leaves[name[:i]] != "FAIL" {
				delete(leaves, name[:i])
			}
		}
	}
	return leaves
}
