package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestReport(t *testing.T) {
	o := options{rounds: 2, block: 3, callers: []int{1, 8}}
	r := &race{options: o, unfit: []string{"crun (no cgroup)"}}
	for i, name := range []string{"toolhost: command, daemon", "bwrap"} {
		e := &entry{contestant: contestant{name: name, isolation: "much"}, perSecond: map[int][]float64{1: {90, 110, 100}, 8: {200}}}
		for ms := range 10 {
			e.took = append(e.took, time.Duration(10*i+ms+1)*time.Millisecond)
		}
		e.cpu, e.ownCPU = []time.Duration{4 * time.Millisecond}, []time.Duration{2 * time.Millisecond}
		if i == 0 {
			e.server = &server{}
		}
		r.entries = append(r.entries, e)
	}
	dir := filepath.Join(t.TempDir(), "results")
	if err := (report{r, []string{"nsjail"}}).write(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "peers.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"2 rounds of 3 runs each",
		"| toolhost: command, daemon | 2.0 | 6.0 | 10.0 | 10.0 | 4.0 (daemon 2.0) | 100 | 200 | much |\n",
		"| bwrap | 12.0 | 16.0 | 20.0 | 20.0 | 4.0 | 100 | 200 | much |\n",
		"Not on PATH: nsjail.\n", "Cannot run here: crun (no cgroup).\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, name := range []string{"latency.svg", "rate.svg"} {
		picture, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(picture), "</svg>") || !strings.Contains(string(picture), "bwrap") {
			t.Errorf("%s: %v, %d bytes", name, err, len(picture))
		}
	}
}

func TestProcessCPU(t *testing.T) {
	if used, err := processCPU(os.Getpid()); err != nil || used < 0 {
		t.Errorf("%s, %v", used, err)
	}
	if _, err := processCPU(1 << 30); err == nil {
		t.Error("no error for a process that is not there")
	}
}
