package turn

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// oneByOne answers each question 50 s after it was asked.
type oneByOne struct {
	t     *testing.T
	busy  bool
	asked []string
	no    map[string]bool
}

func (o *oneByOne) OneAtATime() {}

func (o *oneByOne) Ask(ctx context.Context, i api.Interaction) (api.Answer, error) {
	if o.busy {
		o.t.Errorf("%s is asked beside another", i.CallID)
	}
	o.busy = true
	defer func() { o.busy = false }()
	o.asked = append(o.asked, i.CallID)
	if left := time.Until(i.ExpiresAt); left != time.Duration(i.TimeoutMs)*time.Millisecond {
		o.t.Errorf("%s has %s left of %d ms when it is asked", i.CallID, left, i.TimeoutMs)
	}
	select {
	case <-time.After(50 * time.Second):
		return api.Answer{Approve: !o.no[i.CallID], By: "me"}, nil
	case <-ctx.Done():
		return api.Answer{}, ctx.Err()
	}
}

// Each question has all of its time, in the order of the calls.
func TestQuestionsOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		human := &oneByOne{t: t, no: map[string]bool{"b": true}}
		w.config.Interactor = human
		turn := w.begin(t, Spec{})
		defer turn.End()
		want(t, run(t, turn, callOf("a", "wipe", 1), callOf("b", "wipe", 1), callOf("c", "ask", 1), callOf("d", "wipe", 1)), "ok", "denied/user", "ok", "ok")
		if got := human.asked; len(got) != 4 || got[0] != "a" || got[1] != "b" || got[2] != "c" || got[3] != "d" {
			t.Errorf("asked for %q", got)
		}
	})
}

// So it is however long it takes to find out what each call would run.
func TestQuestionsInOrderWhateverIsKnownFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		human := &oneByOne{t: t, no: map[string]bool{"d": true}}
		w := newWorld()
		w.config.Interactor = human
		w.config.Program = func(r supervisor.Request) (string, error) {
			time.Sleep(map[string]time.Duration{"a": 3 * time.Second, "b": 2 * time.Second, "e": 60 * time.Second}[r.Tool.Path])
			return "", nil
		}
		w.config.Tool = func(name string) (Tool, bool) {
			tool := Tool{Name: name, Mode: ModeAsk, Request: supervisor.Request{Tool: supervisor.Tool{Path: name}}}
			switch name {
			case "c":
				tool.Destructive = true
			case "d":
				described := tool
				tool.Describe = func(context.Context) (*Tool, *api.Result) {
					time.Sleep(80 * time.Second)
					return &described, nil
				}
			}
			return tool, true
		}
		turn := w.begin(t, Spec{})
		defer turn.End()
		var calls []Call
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			calls = append(calls, callOf(name, name, 1))
		}
		want(t, run(t, turn, calls...), "ok", "ok", "ok", "denied/user", "ok")
		if got := human.asked; !slices.Equal(got, []string{"a", "b", "c", "d", "e"}) {
			t.Errorf("asked for %q", got)
		}
	})
}

// What waits for another question is not asked once its turn has ended, and
// nobody can answer it before.
func TestUnraisedQuestionsEndWithTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		human := &oneByOne{t: t}
		w.config.Interactor = human
		turn := w.begin(t, Spec{})
		defer turn.End()
		go func() {
			time.Sleep(10 * time.Second)
			info, _ := turn.Info()
			if n := len(info.PendingInteractions); n != 1 {
				t.Errorf("%d questions are pending", n)
			}
			turn.Abort(api.ReasonUser)
		}()
		want(t, run(t, turn, callOf("a", "wipe", 1), callOf("b", "wipe", 1), callOf("c", "wipe", 1)), "cancelled/user", "cancelled/user", "cancelled/user")
		if len(human.asked) != 1 {
			t.Errorf("asked for %q", human.asked)
		}
	})
}

// screen shows one question at a time, and answers what it is told to.
type screen struct {
	free    chan struct{} // holds one while nothing is shown
	asked   []string
	endless []bool // whether each has no time of its own
	answers chan api.Answer
}

// atScreen begins a turn before a screen, which ends with the test.
func atScreen(t *testing.T) (*Turn, *screen) {
	t.Helper()
	s := &screen{free: make(chan struct{}, 1), answers: make(chan api.Answer)}
	s.free <- struct{}{}
	w := newWorld()
	w.config.Interactor = s
	turn := w.begin(t, Spec{})
	t.Cleanup(turn.End)
	return turn, s
}

func (s *screen) OneAtATime() {}

func (s *screen) Ask(ctx context.Context, i api.Interaction) (api.Answer, error) {
	<-s.free
	defer func() { s.free <- struct{}{} }()
	if ctx.Err() != nil {
		return api.Answer{}, ctx.Err()
	}
	s.asked, s.endless = append(s.asked, i.CallID), append(s.endless, i.ExpiresAt.IsZero())
	select {
	case a := <-s.answers:
		return a, nil
	case <-ctx.Done():
		return api.Answer{}, ctx.Err()
	}
}

// openIn are the calls whose questions are open.
func openIn(turn *Turn) (calls []string) {
	info, _ := turn.Info()
	for _, p := range info.PendingInteractions {
		calls = append(calls, p.CallID)
	}
	slices.Sort(calls)
	return calls
}

// Where people see one question at a time, one that stays open gives way to others, which
// may be answered meanwhile, and comes back after them.
func TestAQuestionThatStaysGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turn, human := atScreen(t)
		run(t, turn, reaching("a", 50))
		done := make(chan struct{})
		go func() {
			defer close(done)
			want(t, run(t, turn, callOf("b", "wipe", 1)), "ok")
		}()
		synctest.Wait()
		if got := openIn(turn); !slices.Equal(got, []string{"a", "b"}) {
			t.Fatalf("open are %q", got)
		}
		human.answers <- api.Answer{Approve: true}
		<-done
		synctest.Wait()
		if got := openIn(turn); !slices.Equal(got, []string{"a"}) || !slices.Equal(human.asked, []string{"a", "b", "a"}) || !slices.Equal(human.endless, []bool{false, false, true}) {
			t.Fatalf("open are %q, asked for %q, without an end %v", got, human.asked, human.endless)
		}
		human.answers <- api.Answer{Approve: true}
		synctest.Wait()
		if r := run(t, turn, reaching("c", 50))[0]; !strings.Contains(r.Text(), "answered: true") || len(human.asked) != 3 {
			t.Errorf("%q, asked for %q", r.Text(), human.asked)
		}
	})
}

// It stays open, too, where others wait for people when its tool gives up.
func TestAQuestionStaysBehindOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turn, human := atScreen(t)
		done := make(chan struct{})
		go func() {
			defer close(done)
			later := asking("b", "", func(a *fakeArgs) { a.Reach, a.Slow, a.Leave, a.Ms = "b.test:443", 10, 1000, 1 })
			want(t, run(t, turn, reaching("a", 50), later), "ok", "ok")
		}()
		<-done
		synctest.Wait()
		if got := openIn(turn); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("open are %q, asked for %q", got, human.asked)
		}
		if err := turn.Answer(idOf(turn, "b"), api.Answer{Approve: true}); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		human.answers <- api.Answer{}
		synctest.Wait()
		if got := openIn(turn); len(got) != 0 || human.asked[len(human.asked)-1] != "a" {
			t.Errorf("open are %q, asked for %q", got, human.asked)
		}
	})
}

// One for which its call waits again comes before those that nobody waits for, with all of
// its time.
func TestAQuestionThatGaveWayIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turn, human := atScreen(t)
		run(t, turn, asking("old", "", func(a *fakeArgs) { a.Reach, a.Leave, a.Ms = "old.test:443", 50, 1 }))
		done := make(chan string)
		go func() {
			own := asking("a", "", func(a *fakeArgs) { a.Reach, a.Leave, a.Again, a.Ms = "b.test:443", 50, 100, 1 })
			other := asking("b", "", func(a *fakeArgs) { a.Slow, a.Ms = 70, 1 })
			results := run(t, turn, own, other)
			done <- results[0].Text()
		}()
		time.Sleep(time.Minute) // both wait, and a's time has not begun
		human.answers <- api.Answer{Value: []byte(`"x"`)}
		synctest.Wait()
		info, _ := turn.Info()
		for _, p := range info.PendingInteractions {
			if left := time.Until(p.ExpiresAt); p.CallID == "a" && left != time.Duration(p.TimeoutMs)*time.Millisecond {
				t.Errorf("a has %s left of %d ms", left, p.TimeoutMs)
			}
		}
		human.answers <- api.Answer{Approve: true}
		if got := <-done; !strings.Contains(got, "answered: true") {
			t.Error(got)
		}
		synctest.Wait()
		if !slices.Equal(human.asked, []string{"old", "a", "b", "a", "old"}) || !slices.Equal(human.endless, []bool{false, false, false, false, true}) {
			t.Errorf("asked for %q, without an end %v", human.asked, human.endless)
		}
	})
}

func idOf(turn *Turn, call string) string {
	info, _ := turn.Info()
	for _, p := range info.PendingInteractions {
		if p.CallID == call {
			return p.ID
		}
	}
	return ""
}
