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
	for i, name := range []string{nameCommand, namePlugin, nameWaiting, nameExec, "go-judge", "bwrap"} {
		e := &entry{contestant: contestant{name: name, isolation: "much"}, perSecond: map[int][]float64{1: {90, 110, 100}, 8: {200}}}
		for ms := range 10 {
			e.took = append(e.took, time.Duration(10*i+ms+1)*time.Millisecond)
			e.rests = append(e.rests, time.Duration(ms+8)*time.Millisecond)
		}
		e.cpu, e.ownCPU = []time.Duration{4 * time.Millisecond}, []time.Duration{2 * time.Millisecond}
		if name == "bwrap" {
			delete(e.perSecond, 8)
		}
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
		"| toolhost: command, daemon | 2.0 | 6.0 | 10.0 | 10.0 | 13.0 | 4.0 (daemon 2.0) | 100 | 200 | much |\n",
		"| bwrap | 52.0 | 56.0 | 60.0 | 60.0 | 13.0 | 4.0 | 100 | fails | much |\n",
		"| fresh plugin call, p50 over go-judge's | 0.35 | ≤ 1.8 | ≤ 1 | goal |\n",
		"| prestarted call, p50 over go-judge's | 0.57 | ≤ 0.5 | ≤ 0.3 | **missed** |\n",
		"| commands a second at 8 callers over go-judge's | 1.00 | ≥ 0.7 | ≥ 1.1 | held |\n",
		"| command after a rest over back to back | 2.17 | ≤ 1.1 | ≤ 1.05 | **missed** |\n",
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
