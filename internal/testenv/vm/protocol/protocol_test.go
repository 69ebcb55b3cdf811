package protocol

import (
	"io"
	"slices"
	"strings"
	"testing"
)

func TestResultLineRoundTrip(t *testing.T) {
	want := Result{Package: "./cgroup", Exit: -1, Passed: 12, Skipped: 3, Failed: 1}
	got, ok := ParseResult(want.String())
	if !ok || got != want {
		t.Fatalf("ParseResult(%q) = %+v, %v; want %+v", want.String(), got, ok, want)
	}
	if _, ok := ParseResult("TOOLHOST-VM pkg=./cgroup exit=0 passed="); ok {
		t.Fatal("a line cut short was taken for a result")
	}
}

func TestReportProblems(t *testing.T) {
	good := Result{Package: "./a", Passed: 1}.String()
	for name, c := range map[string]struct {
		console []string
		want    string // part of the only problem; empty for none
	}{
		"all well":          {[]string{"=== RUN", good, DoneLine(1)}, ""},
		"no final line":     {[]string{good}, "final line is missing"},
		"wrong final count": {[]string{good, DoneLine(2)}, "final line is missing"},
		"did not run":       {[]string{DoneLine(1)}, "no result line"},
		"failed test":       {[]string{Result{Package: "./a", Exit: 1, Passed: 9, Failed: 1}.String(), DoneLine(1)}, "1 failed tests"},
		"failed exit":       {[]string{Result{Package: "./a", Exit: -1, Passed: 9}.String(), DoneLine(1)}, "exit -1"},
		"all skipped":       {[]string{Result{Package: "./a", Skipped: 4}.String(), DoneLine(1)}, "not one test passed (4 skipped)"},
		"nothing ran":       {[]string{Result{Package: "./a"}.String(), DoneLine(1)}, "not one test passed"},
	} {
		t.Run(name, func(t *testing.T) {
			var report Report
			for _, line := range c.console {
				report.Add(line)
			}
			got := report.Problems([]string{"./a"})
			if c.want == "" && len(got) == 0 {
				return
			}
			if c.want == "" || len(got) != 1 || !strings.Contains(got[0], c.want) {
				t.Fatalf("problems %q, want one with %q", got, c.want)
			}
		})
	}
}

func TestTallyCountsLeaves(t *testing.T) {
	const output = "\x16=== RUN   TestA\nno newline at the end\x16--- PASS: TestA (0.00s)\n\x16=== NAME  \n" +
		"--- PASS: TestForged (0.00s)\n" +
		"\x16--- SKIP: TestB/one (0.00s)\n\x16--- SKIP: TestB/two (0.00s)\n\x16--- PASS: TestB (0.01s)\n" +
		"\x16--- PASS: TestC/one (0.00s)\n\x16--- FAIL: TestC (0.01s)\n\x16FAIL\n"
	var shown strings.Builder
	tally := NewTally(&shown)
	for chunk := range slices.Chunk([]byte(output), 7) {
		if _, err := tally.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	want := Result{Package: "p", Exit: 1, Passed: 2, Skipped: 2, Failed: 1}
	if got := tally.Result("p", 1); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	if got := tally.Skipped(); !slices.Equal(got, []string{"TestB/one", "TestB/two"}) {
		t.Errorf("skipped %q", got)
	}
	if want := strings.ReplaceAll(strings.ReplaceAll(output, "\x16=== NAME  \n", ""), "\x16", ""); shown.String() != want {
		t.Errorf("passed on %q, want %q", shown.String(), want)
	}
}

func TestTallyCountsBenchmarks(t *testing.T) {
	const output = "\x16=== RUN   BenchmarkA\nBenchmarkA\nBenchmarkA-2   1   5 ns/op\n\x16=== NAME  \n" +
		"\x16=== RUN   BenchmarkB\nBenchmarkB\n\x16=== RUN   BenchmarkB/one\n\x16--- SKIP: BenchmarkB/one\n    missing: x\n" +
		"\x16=== RUN   BenchmarkB/two\n\x16--- BENCH: BenchmarkB/two-2\n    logged\n\x16=== RUN   BenchmarkC\n\x16--- FAIL: BenchmarkC\n"
	tally := NewTally(io.Discard)
	if _, err := tally.Write([]byte(output)); err != nil {
		t.Fatal(err)
	}
	want := Result{Package: "p", Passed: 2, Skipped: 1, Failed: 1}
	if got := tally.Result("p", 0); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}

func TestTallyBoundsALine(t *testing.T) {
	tally := NewTally(io.Discard)
	for range 10 {
		_, _ = tally.Write([]byte("\x16" + strings.Repeat("x", maxLineBytes)))
		_, _ = tally.Write([]byte(strings.Repeat("y", maxLineBytes)))
	}
	if len(tally.line) > maxLineBytes {
		t.Fatalf("kept %d bytes of one line", len(tally.line))
	}
}
