package fleet_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/toolhost/toolhost/api"
)

// history is what callers and tools have noted of one call.
type history struct {
	began  int64
	ended  []note
	starts []int64
}

// histories reads those of all calls.
func histories(t testing.TB, notes, starts string) map[string]*history {
	t.Helper()
	calls := map[string]*history{}
	for _, line := range linesOf(t, notes) {
		var n note
		if err := json.Unmarshal([]byte(line), &n); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if n.Status == "" {
			calls[n.Call] = &history{began: n.At}
		} else {
			calls[n.Call].ended = append(calls[n.Call].ended, n)
		}
	}
	for _, line := range linesOf(t, starts) {
		id, at, _ := strings.Cut(line, " ")
		when, err := strconv.ParseInt(at, 10, 64)
		if err != nil || calls[id] == nil {
			t.Errorf("something has started that nobody has called: %q", line)
			continue
		}
		calls[id].starts = append(calls[id].starts, when)
	}
	return calls
}

func linesOf(t testing.TB, path string) (lines []string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		lines = append(lines, s.Text())
	}
	return lines
}

// judge says what is wrong with each call, by what its tool has done.
func judge(calls map[string]*history) (wrong []string) {
	for id, h := range calls {
		complain := func(format string, args ...any) { wrong = append(wrong, id+": "+fmt.Sprintf(format, args...)) }
		if len(h.starts) > 1 && !isHarmless(id) {
			complain("has started %d times", len(h.starts))
		}
		if len(h.ended) > 1 {
			complain("has %d results", len(h.ended))
		}
		for _, n := range h.ended {
			switch {
			case n.Never && len(h.starts) > 0:
				complain("has started, and it was said (%s) that it has changed nothing", n.Status)
			case n.Status == api.StatusOK && len(h.starts) == 0:
				complain("is ok, and has started %d times", len(h.starts))
			case n.Alive > 0:
				complain("%d processes run, and it was said that none does", n.Alive)
			case n.Status == api.StatusOK && n.Output != wholeOutput, !strings.HasPrefix(wholeOutput, n.Output) && !n.Missed:
				complain("is %s with the output %q", n.Status, n.Output)
			}
		}
	}
	slices.Sort(wrong)
	return wrong
}

var wholeOutput = func() (s string) {
	for i := range soakLines {
		s += fmt.Sprintln(i + 1)
	}
	return s
}()

// The second judge is porcupine. To it a call is a register that a tool's start and the
// result change: it looks for an order of these, each within the time that it took, in
// which no start comes after another one, or after a result that rules it out.

// register is where a call stands; its inputs are "start" and what a result says.
type register uint8

const (
	open register = iota
	started
	closed
	mayStart // lost: nobody knows, and it may start yet, once
)

// once is the model of a call that starts once, twice that of one that does no harm if it
// starts again, unless that was ruled out.
var once, twice = model(false), model(true)

func registerOf(n note) string {
	switch {
	case n.Never:
		return "never"
	case n.Status == api.StatusLost:
		return "lost"
	case n.Status == api.StatusOK:
		return "ok"
	}
	return "ended" // it has started, or would have
}

func model(again bool) porcupine.Model {
	end := map[register]register{open: mayStart, started: closed}
	if again {
		end[started] = mayStart
	}
	step := func(state, input, _ any) (bool, any) {
		at := state.(register)
		switch input.(string) {
		case "start":
			if again && at != closed {
				return true, map[register]register{open: started, started: started, mayStart: mayStart}[at]
			}
			return at == open || at == mayStart, map[register]register{open: started, mayStart: closed}[at]
		case "never":
			return at == open, closed
		case "ok":
			return at == started, end[at]
		case "lost":
			return at == open || at == started, end[at]
		}
		return at == started || at == open, end[started]
	}
	return porcupine.Model{Init: func() any { return open }, Step: step, Equal: func(a, b any) bool { return a == b }}
}

// linearizable says which calls have a history that no order explains.
func linearizable(calls map[string]*history) (wrong []string) {
	for id, h := range calls {
		var operations []porcupine.Operation
		for i, at := range h.starts {
			operations = append(operations, porcupine.Operation{ClientId: i + 1, Input: "start", Call: at, Return: at + 1})
		}
		for _, n := range h.ended {
			operations = append(operations, porcupine.Operation{ClientId: 0, Input: registerOf(n), Call: h.began, Return: n.At})
		}
		if len(h.ended) == 0 { // its caller has died
			operations = append(operations, porcupine.Operation{ClientId: 0, Input: "lost", Call: h.began, Return: math.MaxInt64})
		}
		of := once
		if isHarmless(id) {
			of = twice
		}
		if porcupine.CheckOperationsTimeout(of, operations, time.Minute) != porcupine.Ok {
			wrong = append(wrong, id)
		}
	}
	slices.Sort(wrong)
	return wrong
}

// Both judges find what they are there for.
func TestTheJudges(t *testing.T) {
	t.Parallel()
	ended := func(n note) []note { n.At = 100; return []note{n} }
	ok, never, lost := note{Status: api.StatusOK, Output: wholeOutput}, note{Status: api.StatusOverloaded, Never: true}, note{Status: api.StatusLost}
	for name, c := range map[string]struct {
		h                  history
		judged, explicable bool // fine to the first one, to the second
	}{
		"one start":                 {history{1, ended(ok), []int64{50}}, true, true},
		"never":                     {history{1, ended(never), nil}, true, true},
		"lost":                      {history{1, ended(lost), []int64{50}}, true, true},
		"lost, and started later":   {history{1, ended(lost), []int64{150}}, true, true},
		"its caller has died":       {history{1, nil, []int64{50}}, true, true},
		"two starts":                {history{1, ended(ok), []int64{50, 60}}, false, false},
		"two starts of a lost one":  {history{1, ended(lost), []int64{50, 150}}, false, false},
		"two starts without caller": {history{1, nil, []int64{50, 60}}, false, false},
		"never, and started":        {history{1, ended(never), []int64{50}}, false, false},
		"never, and started later":  {history{1, ended(never), []int64{150}}, false, false},
		"ok without a start":        {history{1, ended(ok), nil}, false, false},
		"started after it was ok":   {history{1, ended(ok), []int64{150}}, true, false},
		"two results":               {history{1, append(ended(ok), ended(lost)...), []int64{50}}, false, false},
		"half of the output":        {history{1, ended(note{Status: api.StatusOK, Output: "1\n"}), []int64{50}}, false, true},
		"other output":              {history{1, ended(note{Status: api.StatusLost, Output: "2\n"}), []int64{50}}, false, true},
		"twice":                     {history{1, ended(ok), []int64{50, 60}}, true, true},
		"twice, and once later":     {history{1, ended(lost), []int64{50, 150}}, true, true},
		"twice never, and started":  {history{1, ended(never), []int64{50}}, false, false},
		"twice ok, without a start": {history{1, ended(ok), nil}, false, false},
		"a process left":            {history{1, ended(note{Status: api.StatusLost, Alive: 1}), []int64{50}}, false, true},
	} {
		calls := map[string]*history{name: &c.h}
		if wrong := judge(calls); (len(wrong) == 0) != c.judged {
			t.Errorf("the first judge: %q: %q", name, wrong)
		}
		if wrong := linearizable(calls); (len(wrong) == 0) != c.explicable {
			t.Errorf("the second judge: %q: %q", name, wrong)
		}
	}
}
