package top

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/cli/present"
	"github.com/toolhost/toolhost/internal/testenv/pty"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// running is a call that has run for so long, and used so much CPU.
func running(id string, elapsed time.Duration, cpuMs int64) api.CurrentTool {
	return api.CurrentTool{
		CallID: id, Tool: "search", State: "running", StartedAt: noon.Add(-elapsed), TimeoutMs: 90_000,
		Usage: &api.CurrentUsage{CPUMs: cpuMs, MemoryBytes: 5 << 20, Pids: 3},
	}
}

func turnOf(id string, calls ...api.CurrentTool) api.Turn {
	return api.Turn{TurnID: id, CurrentTools: calls, ToolCallCount: len(calls)}
}

// rowsOf are the lines below the header that are not empty.
func rowsOf(m *model, columns, rows int) []string {
	lines := m.frame(columns, rows, false)
	return slices.DeleteFunc(lines[2:len(lines)-2], func(s string) bool { return s == "" })
}

func TestRows(t *testing.T) {
	asking := api.CurrentTool{CallID: "b", Tool: "remove", State: "asking"}
	turn := turnOf("T1", running("a", 12300*time.Millisecond, 500), asking)
	held := running("c", time.Minute, 0) // which has asked in the middle of it
	held.HumanWaitMs, held.Usage = 50_000, nil
	turn.CurrentTools = append(turn.CurrentTools, held)
	turn.AgentID = "planner"
	turn.PendingInteractions = []api.Interaction{{CallID: "b", Prompt: "Run the tool remove?"}}
	var m model
	m.take([]api.Turn{turn, turnOf("T2")}, noon)
	want := []string{
		"  T1  calls: 3 now, 2 in all  agent planner",
		"    a                                search         running    12.3s of 1m30s            5MiB",
		"    b                                remove         asking",
		"     waits for you: Run the tool remove?",
		"    c                                search         running      10s of 1m30s",
		"  T2  idle",
	}
	got := rowsOf(&m, 99, 24)
	for i := range got {
		got[i] = strings.TrimRight(got[i], " ")
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if title := m.title(); !strings.HasPrefix(title, "toolhost  turns 2  running 2  WAITING FOR YOU 1  ") {
		t.Errorf("title %q", title)
	}
	turn.CurrentTools[0].Usage.CPUMs += 1500
	m.take([]api.Turn{turn}, noon.Add(2*time.Second))
	if cpu := m.rows[1].cpu; cpu != "75%" {
		t.Errorf("CPU %q", cpu)
	}
}

// Workers have a column once a call is at one.
func TestWorkers(t *testing.T) {
	away := running("a", time.Second, 0)
	away.Worker, away.Usage = "w1", nil
	var m model
	m.take([]api.Turn{turnOf("T1", away, running("b", time.Second, 0))}, noon)
	for columns, want := range map[int][2]string{
		99: {"    a                         search         running  w1                1s of 1m30s", "    b                         search         running                    1s of 1m30s            5MiB"},
		80: {"    a      search         running  w1                1s of 1m30s", "    b      search         running                    1s of 1m30s            5MiB"},
	} {
		lines := m.frame(columns, 24, false)
		if !strings.Contains(lines[1], "STATE    WORKER") {
			t.Errorf("header %q", lines[1])
		}
		for i, line := range rowsOf(&m, columns, 24)[1:] {
			if got := strings.TrimRight(line, " "); got != want[i] {
				t.Errorf("%d columns: got\n%s\nwant\n%s", columns, got, want[i])
			}
		}
	}
}

// Whatever the names are, no line is wider than the screen, there are as many as
// it has, and nothing in them controls it.
func TestFrameFits(t *testing.T) {
	hostile := "\x1b[2J\r\n\t\x00\u202e" + strings.Repeat("漢👩‍👩‍👧", 40)
	turn := turnOf(hostile, running(hostile, time.Hour, 1), running("x", time.Second, 1))
	turn.CurrentTools[0].Tool, turn.AgentID = hostile, hostile
	turn.PendingInteractions = []api.Interaction{{CallID: "x", Prompt: hostile}}
	for _, columns := range []int{1, 2, 9, 40, 59, 60, 80, 99, 300} {
		for _, rows := range []int{2, 3, 5, 24} {
			for range 3 {
				m := model{problem: hostile}
				m.take([]api.Turn{turn, turnOf("T2")}, noon)
				m.move(2)
				m.say("%s", hostile)
				lines := m.frame(columns, rows, false)
				if len(lines) != rows {
					t.Fatalf("%d x %d: %d lines", columns, rows, len(lines))
				}
				for _, line := range lines {
					if present.Columns(line) > columns || strings.ContainsAny(line, "\x1b\r\n\t\x00\u202e") {
						t.Fatalf("%d x %d: %q", columns, rows, line)
					}
				}
			}
		}
	}
}

// What was chosen stays so when rows come and go above it, and when it goes
// itself nothing is chosen in its place.
func TestChoice(t *testing.T) {
	var m model
	m.take([]api.Turn{turnOf("T2", running("a", 0, 0), running("b", 0, 0))}, noon)
	if m.chosen != (key{}) {
		t.Fatalf("chosen at first: %v", m.chosen)
	}
	m.move(1)
	m.move(1)
	m.move(1)
	m.take([]api.Turn{turnOf("T1", running("a", 0, 0)), turnOf("T2", running("a", 0, 0), running("b", 0, 0))}, noon)
	if m.chosen != (key{"T2", "b"}) {
		t.Fatalf("chosen %v", m.chosen)
	}
	m.take([]api.Turn{turnOf("T1", running("a", 0, 0)), turnOf("T2", running("a", 0, 0))}, noon)
	if m.chosen != (key{}) {
		t.Errorf("chosen after it has gone: %v", m.chosen)
	}
	m.move(-1)
	if m.chosen != (key{"T2", "a"}) {
		t.Errorf("chosen near by: %v", m.chosen)
	}
	m.move(-100)
	if m.chosen != (key{"T1", ""}) {
		t.Errorf("the first: %v", m.chosen)
	}
	m.take(nil, noon)
	m.move(1)
	if m.chosen != (key{}) {
		t.Errorf("chosen of nothing: %v", m.chosen)
	}
}

// What is said of a turn or a call goes with it, and nothing is said of what is
// not known while the daemon cannot be asked.
func TestWordsGoWithWhatTheyAreAbout(t *testing.T) {
	s := &screen{o: Options{Problem: error.Error}}
	of := key{"T", "a"}
	s.took(poll{turns: []api.Turn{turnOf("T", running("a", 0, 0))}})
	s.showOutcome(outcome{of: of, what: "call a"})
	s.took(poll{turns: []api.Turn{turnOf("T", running("a", 0, 0))}})
	if !strings.Contains(s.m.said, "aborting call a") {
		t.Errorf("while it is there: %q", s.m.said)
	}
	s.took(poll{turns: []api.Turn{turnOf("T")}})
	if s.m.said != "" {
		t.Errorf("after it has gone: %q", s.m.said)
	}
	s.showOutcome(outcome{of: key{turn: "T"}, what: "turn T"})
	s.took(poll{err: errors.New("it went away")})
	if title := s.m.title(); strings.Contains(title, "turns 0") || !strings.Contains(title, "cut off") {
		t.Errorf("title %q", title)
	}
	s.took(poll{turns: nil})
	if s.m.said != "" || !strings.Contains(s.m.title(), "turns 0") {
		t.Errorf("after the daemon came back: %q, %q", s.m.said, s.m.title())
	}
}

// The chosen row is on the screen, however many there are.
func TestScrolls(t *testing.T) {
	var calls []api.CurrentTool
	for i := range 50 {
		calls = append(calls, running(string(rune('A'+i)), 0, 0))
	}
	var m model
	m.take([]api.Turn{turnOf("T", calls...)}, noon)
	for range 60 {
		m.move(1)
		shown := rowsOf(&m, 80, 10)
		if !slices.ContainsFunc(shown, func(s string) bool { return strings.HasPrefix(s, "> ") }) {
			t.Fatalf("%v is not among\n%s", m.chosen, strings.Join(shown, "\n"))
		}
	}
}

func TestDecode(t *testing.T) {
	for in, want := range map[string][]press{
		"a": {pressAbortCall}, "t": {pressAbortTurn}, "q": {pressQuit}, "\x03": {pressQuit}, "\x1b[A": {pressUp}, "\x1bOB": {pressDown}, "jk": {pressDown, pressUp},
		"\x1b[1;5A": nil, "\x1b[200~": nil, "\x1b[I": nil, "\x1ba": nil, "\x1b": nil, "\x1b[": nil, "\x1b[12t": nil, "xyz\xff": nil, "\x1b[Aa": {pressUp, pressAbortCall},
	} {
		if got := decode([]byte(in)); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", in, got, want)
		}
	}
}

// Of an id that has no room its end is shown: models' ids begin alike.
func TestLongIDs(t *testing.T) {
	for _, test := range []struct {
		id      string
		columns int
		want    string
	}{
		{"toolu_01A09q90", 14, "toolu_01A09q90"}, {"toolu_01A09q90", 8, "…1A09q90"}, {"漢字漢字", 6, "…漢字"}, {"", 6, ""}, {"漢字", 2, "…"},
	} {
		if got := ending(test.id, test.columns); got != test.want {
			t.Errorf("%q in %d: %q, want %q", test.id, test.columns, got, test.want)
		}
	}
}

func TestElapsed(t *testing.T) {
	for want, c := range map[string]api.CurrentTool{
		"":               {},
		"0s":             {StartedAt: noon.Add(time.Second)}, // another clock
		"1.2s of 30s":    {StartedAt: noon.Add(-1234 * time.Millisecond), TimeoutMs: 30_000},
		"2m5s of 10m":    {StartedAt: noon.Add(-125 * time.Second), TimeoutMs: 600_000},
		"1h of 1h":       {StartedAt: noon.Add(-time.Hour), TimeoutMs: 3_600_000},
		"1h1m2s":         {StartedAt: noon.Add(-3662 * time.Second)},
		"10m of 1h0m30s": {StartedAt: noon.Add(-10 * time.Minute), TimeoutMs: 3_630_000},
	} {
		if got := Elapsed(c, noon); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// fakeDaemon runs one call, until somebody aborts it.
type fakeDaemon struct {
	mu     sync.Mutex
	err    error
	aborts []string
}

func (f *fakeDaemon) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *fakeDaemon) Active(context.Context) ([]api.Turn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return []api.Turn{turnOf("T", running("one", 0, 0))}, f.err
}

func (f *fakeDaemon) Abort(_ context.Context, turnID string) error {
	return f.AbortCall(context.Background(), turnID, "")
}

func (f *fakeDaemon) AbortCall(_ context.Context, turnID, callID string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.aborts = append(f.aborts, turnID+" "+callID)
	if len(f.aborts) > 2 {
		return errors.New("it is over\nalready")
	}
	return nil
}

// TestRun plays a person at a terminal.
func TestRun(t *testing.T) {
	p := pty.New(t)
	tty, err := os.OpenFile(p.Slave().Name(), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	daemon, done := &fakeDaemon{}, make(chan error, 1)
	ctx := wait.Context(t)
	go func() { done <- Run(ctx, daemon, Options{TTY: tty, Every: 5 * time.Millisecond}) }()
	p.Expect(t, "one", 1)
	p.Type(t, "ja")
	p.Expect(t, "this is a turn: t aborts it", 1)
	p.Type(t, "ja")
	p.Expect(t, "aborting call one; again kills at once", 1)
	p.Type(t, "t")
	p.Expect(t, "aborting turn T; again kills at once", 1)
	p.Type(t, "t")
	p.Expect(t, `turn T: it is over\nalready`, 1)
	daemon.set(errors.New("it went away"))
	p.Expect(t, "it went away", 1)
	daemon.set(nil)
	shown := strings.Count(p.Screen(), "T  calls: 1 now")
	p.Resize(t, 60, 8)
	p.Expect(t, "T  calls: 1 now", shown+1)
	p.Type(t, "q")
	if err := <-done; err != nil || !p.Echoes(t) {
		t.Errorf("%v, echo %t", err, p.Echoes(t))
	}
	if want := []string{"T one", "T ", "T "}; !slices.Equal(daemon.aborts, want) {
		t.Errorf("aborted %q, want %q", daemon.aborts, want)
	}
}
