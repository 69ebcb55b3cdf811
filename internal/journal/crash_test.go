package journal

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/api"
)

// killsVar is how often TestKill kills an owner, instead of defaultKills.
const (
	killsVar     = "TOOLHOST_JOURNAL_KILLS"
	defaultKills = 30
)

const appenders = 3

// playAppender appends to several turns at once, in batches of one to three, and prints "turn seq" for each event after
// its Append, until it is killed.
func playAppender(dir, name string, ahead bool) {
	// A small limit, so that pruning is killed too.
	j, err := Open(dir, Options{Retention: Retention{MaxBytes: 256 << 10}, Ahead: ahead})
	if err != nil {
		panic(err)
	}
	fmt.Println("open")
	var printing sync.Mutex
	var wg sync.WaitGroup
	for n := range appenders {
		wg.Go(func() {
			for round := 0; ; round++ {
				events := appenderTurn(fmt.Sprintf("%s-%d-%d", name, n, round), round > 0)
				events[0].Fresh = true
				for len(events) > 0 {
					batch := events[:min(len(events), 1+rand.IntN(3))]
					events = events[len(batch):]
					if err := j.Append(batch...); err != nil {
						panic(err)
					}
					printing.Lock()
					for _, e := range batch {
						fmt.Println(e.TurnID, e.Seq)
					}
					printing.Unlock()
				}
			}
		})
	}
	wg.Wait()
}

// appenderTurn is a short turn with an end, or one that never ends and so is never pruned.
func appenderTurn(turn string, ends bool) []Event {
	if ends {
		return wholeTurn(turn, "shell", "ok")
	}
	events := make([]Event, 40)
	for i := range events {
		events[i] = event(turn, int64(i+1), "tool_output")
	}
	return events
}

// TestKill kills an owner at random moments: whatever it said to be appended must be there, without a gap, and as it was.
func TestKill(t *testing.T) { // not beside tests that lock: until its child is executed it has their locks, too
	dir := t.TempDir()
	kills := defaultKills
	if testing.Short() {
		kills = 3 // the race detector sees nothing of what a kill leaves
	}
	kills = killsOf(t, kills)
	promised := 0
	for n := range kills {
		role := []string{"append", "append ahead"}[n%2]
		said, pid := killAppender(t, dir, fmt.Sprint("k", n), role)
		promised += expectKept(t, dir, fmt.Sprint("k", n), said, pid)
	}
	t.Logf("%d kills, %d events promised", kills, promised)
}

// killsOf is how often to kill: as killsVar says, or so often.
func killsOf(t *testing.T, kills int) int {
	t.Helper()
	if s := os.Getenv(killsVar); s != "" {
		var err error
		if kills, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	return kills
}

// killAppender returns the last Seq of each turn that the owner printed before it died.
func killAppender(t *testing.T, dir, name, role string) (said map[string]int64, pid int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], dir, name)
	cmd.Env = childEnv(role)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan()
	if lines.Text() != "open" {
		t.Errorf("the owner began with %q", lines.Text())
	}
	said = map[string]int64{}
	kill := rand.IntN(400)
	for read := 0; ; read++ {
		if read == kill {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		if !lines.Scan() {
			break
		}
		var turn string
		var seq int64
		if n, _ := fmt.Sscan(lines.Text(), &turn, &seq); n == 2 {
			said[turn] = seq
		}
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != -1 { // -1: killed
		t.Errorf("the owner ended by itself: %v", err)
	}
	return said, cmd.Process.Pid
}

// expectKept opens the journal of a killed owner and closes its turns. It returns how many events were promised.
func expectKept(t *testing.T, dir, name string, said map[string]int64, pid int) (promised int) {
	t.Helper()
	before := mustRead(t, dir) // without an owner, and before anybody has recovered the log
	expectTurns(t, before, name, said)
	mustClose(t, before)
	j := mustOpen(t, dir, Options{})
	defer mustClose(t, j)
	if r := j.Report(); !r.Unclean || r.LastPID != pid || !r.Checked || r.MovedAside != "" || r.Damage != nil {
		t.Errorf("after a kill of %d the report is %+v", pid, r)
	}
	r := mustRead(t, dir)
	defer mustClose(t, r)
	if err := quickCheck(t.Context(), r.db); err != nil {
		t.Error(err)
	}
	expectTurns(t, r, name, said)
	for _, u := range j.Unfinished() {
		if u.NextSeq <= said[u.TurnID] {
			t.Errorf("%s was promised up to %d, next is %d", u.TurnID, said[u.TurnID], u.NextSeq)
		}
		mustAppend(t, j, closing(u)...)
	}
	if _, err := j.Prune(t.Context()); err != nil {
		t.Error(err)
	}
	expectEmptied(t, j)
	for _, seq := range said {
		promised += int(seq)
	}
	return promised
}

// closing ends an unfinished turn, at a time at which it is pruned before others.
func closing(u Unfinished) []Event {
	var events []Event
	for i, call := range u.OpenCalls {
		events = append(events, ending(u.TurnID, u.NextSeq+int64(i), call.CallID, call.Tool, "no_result"))
	}
	end := event(u.TurnID, u.NextSeq+int64(len(events)), api.EventTurnEnd)
	end.Time = start
	return append(events, end)
}

// expectTurns compares what is there with what was promised; only whole ended turns may have been pruned.
func expectTurns(t *testing.T, r *Reader, name string, said map[string]int64) {
	t.Helper()
	for turn, last := range said {
		ends := !strings.HasSuffix(turn, "-0")
		var got []Event
		err := r.Events(turn, 0, func(e Event) bool { got = append(got, e); return true })
		if errors.Is(err, ErrNotFound) && ends && last+3 >= 5 {
			continue // pruned; its end may have been committed and not yet printed
		}
		if err != nil || int64(len(got)) < last {
			t.Errorf("%s: %s was promised up to %d, %d are there, error %v", name, turn, last, len(got), err)
			continue
		}
		expectSame(t, got, appenderTurn(turn, ends)[:len(got)])
	}
}
