package main

import (
	"fmt"
	"strings"
	"time"
)

// target is what a figure of ours must be, and what it is hoped to become.
type target struct {
	what       string
	value      float64
	must, goal float64
	atLeast    bool // otherwise at most
}

func (t target) verdict() string {
	met := func(bound float64) bool { return t.value <= bound && !t.atLeast || t.value >= bound && t.atLeast }
	switch {
	case met(t.goal):
		return "goal"
	case met(t.must):
		return "held"
	}
	return "**missed**"
}

// targets are ratios of contestants of this run, and what a run of ours costs: those
// whose contestants took part.
func (r report) targets() string {
	list := r.reached()
	if len(list) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n| what must be shown | | must | goal | |\n|---|---|---|---|---|\n")
	for _, t := range list {
		bound := "≤"
		if t.atLeast {
			bound = "≥"
		}
		fmt.Fprintf(&b, "| %s | %.2f | %s %g | %s %g | %s |\n", t.what, t.value, bound, t.must, bound, t.goal, t.verdict())
	}
	return b.String()
}

func (r report) reached() (list []target) {
	command, plugin, waiting, alone := r.find(nameCommand), r.find(namePlugin), r.find(nameWaiting), r.find(nameExec)
	if command == nil || plugin == nil || waiting == nil || alone == nil {
		return nil
	}
	if judge := r.find("go-judge"); judge != nil {
		p50 := judge.took
		list = append(
			list,
			target{"fresh plugin call, p50 over go-judge's", over(plugin.took, p50), 1.8, 1.0, false},
			target{"the same after a rest, over go-judge's back to back", over(plugin.rests, p50), 1.8, 1.0, false},
			target{"fresh command, p50 over go-judge's", over(command.took, p50), 1.5, 0.8, false},
			target{"the same after a rest, over go-judge's back to back", over(command.rests, p50), 1.5, 0.8, false},
			target{"prestarted call, p50 over go-judge's", over(waiting.took, p50), 0.5, 0.3, false},
			target{"the same after a rest, over go-judge's back to back", over(waiting.rests, p50), 0.5, 0.3, false},
		)
		for _, callers := range r.callers[1:] {
			rate := median(judge.perSecond[callers])
			list = append(
				list,
				target{fmt.Sprintf("plugin calls a second at %d callers over go-judge's", callers), median(plugin.perSecond[callers]) / rate, 0.45, 0.75, true},
				target{fmt.Sprintf("commands a second at %d callers over go-judge's", callers), median(command.perSecond[callers]) / rate, 0.7, 1.1, true},
			)
		}
	}
	list = append(
		list,
		target{"CPU ms a plugin call", ms(median(plugin.cpu)), 14, 8, false},
		target{"CPU ms a command", ms(median(command.cpu)), 9, 6, false},
		target{"plugin call after a rest over back to back", over(plugin.rests, plugin.took), 1.1, 1.05, false},
		target{"command after a rest over back to back", over(command.rests, command.took), 1.1, 1.05, false},
	)
	if bwrap := r.find("bwrap"); bwrap != nil {
		list = append(list, target{"exec, p50 over bwrap's", over(alone.took, bwrap.took), 4, 2, false})
	}
	return list
}

func (r report) find(name string) *entry {
	for _, e := range r.entries {
		if e.name == name {
			return e
		}
	}
	return nil
}

func over(ours, theirs []time.Duration) float64 { return ms(median(ours)) / ms(median(theirs)) }

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
