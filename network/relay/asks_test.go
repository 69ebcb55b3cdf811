package relay

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/toolhost/toolhost/network"
)

// patient is a connection that waits until the test says that its tool has closed it.
type patient struct{ closed bool }

func (p *patient) gaveUp() bool { return p.closed }

// asking is a session of which only the questions are used.
func asking() (*session, *told, Ask) {
	up := &told{}
	return &session{spec: Session{ID: "s"}, host: up, asks: newAsks()}, up, Ask{Session: "s", Name: "b.test", Port: 443}
}

// The host knows when the last connection has given up, and that an answer which comes
// then has found none. The next one asks anew, and has a yes to the question before it.
func TestAQuestionThatNobodyWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, up, key := asking()
		wait := func() (leave func() answered) {
			ctx, cancel := context.WithCancel(t.Context())
			got := make(chan answered, 1)
			go func() { got <- s.ask(ctx, &patient{}, key.Name, key.Port) }()
			synctest.Wait()
			return func() answered { cancel(); return <-got }
		}
		answer := func(id int, v Verdict) int {
			key.ID = id
			defer synctest.Wait()
			return s.answer(key, v, "no")
		}
		first, second := wait(), wait()
		if got := first(); got.verdict != Denied || !strings.Contains(got.why, "stays open") {
			t.Error(got)
		}
		synctest.Wait()
		if !slices.Equal(up.notes, []string{"asked b.test"}) {
			t.Error(up.notes)
		}
		second()
		synctest.Wait()
		wait()()
		synctest.Wait()
		if !slices.Equal(up.notes, []string{"asked b.test", "left b.test", "asked b.test", "left b.test"}) {
			t.Error(up.notes)
		}
		if taken := answer(2, AllowOnce); taken != 0 {
			t.Errorf("question %d has the answer, which nobody waits for", taken)
		}
		leave := wait()
		if taken := answer(2, Denied); taken != 0 {
			t.Errorf("question %d has a no to an earlier one", taken)
		}
		if taken := answer(2, AllowOnce); taken != 3 {
			t.Errorf("question %d has the yes to an earlier one, want 3", taken)
		}
		if got := leave(); got.verdict != AllowOnce {
			t.Error(got)
		}
		leave = wait()
		if taken := answer(4, Denied); taken != 4 {
			t.Errorf("question %d has the answer, want 4", taken)
		}
		if got := leave(); got.why != "no" || len(up.notes) != 6 {
			t.Error(got, up.notes)
		}
	})
}

// A yes is spent on no connection that its tool has closed, though the relay has not
// noticed that; it is for all that wait as long as one does.
func TestAYesForAConnectionThatIsGone(t *testing.T) {
	for _, test := range []struct {
		first, second patient
		taken         int
		why           string
	}{
		{patient{closed: true}, patient{closed: true}, 0, "gave up before the answer came"},
		{patient{closed: true}, patient{}, 1, ""},
		{patient{}, patient{}, 1, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, up, key := asking()
			got := make(chan answered, 2)
			for _, w := range []*patient{&test.first, &test.second} {
				go func() { got <- s.ask(t.Context(), w, key.Name, key.Port) }()
			}
			synctest.Wait()
			key.ID = 1
			if taken := s.answer(key, AllowOnce, ""); taken != test.taken {
				t.Errorf("%+v: question %d has the answer", test, taken)
			}
			for range 2 {
				if a := <-got; (a.verdict == AllowOnce) != (test.taken > 0) || !strings.Contains(a.why, test.why) {
					t.Errorf("%+v: %+v", test, a)
				}
			}
			go func() { got <- s.ask(t.Context(), &patient{}, key.Name, key.Port) }()
			synctest.Wait()
			if !slices.Equal(up.notes, []string{"asked b.test", "asked b.test"}) {
				t.Errorf("%+v: %q", test, up.notes)
			}
			key.ID = 2
			s.answer(key, Denied, "")
			<-got
		})
	}
}

// slowHost hears of a question only when the test has it hear.
type slowHost struct {
	*told
	hears chan struct{}
}

func (h slowHost) asked(a Ask) { <-h.hears; h.told.asked(a) }

// A yes to an earlier question is not given to one that the host has not heard of, which
// has people asked as soon as it has; a yes to itself shows that it has.
func TestAYesBeforeTheHostKnowsTheQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, up, key := asking()
		host := slowHost{up, make(chan struct{})}
		s.host, s.asks.last = host, 1
		got := make(chan answered, 1)
		ask := func() {
			go func() { got <- s.ask(t.Context(), &patient{}, key.Name, key.Port) }()
			synctest.Wait()
		}
		answer := func(id, want int) {
			t.Helper()
			key.ID = id
			if taken := s.answer(key, AllowOnce, ""); taken != want {
				t.Errorf("a yes to question %d is that of %d, want %d", id, taken, want)
			}
		}
		ask()
		answer(1, 0)
		host.hears <- struct{}{}
		synctest.Wait()
		answer(1, 2)
		<-got
		ask()
		answer(3, 3)
		<-got
		host.hears <- struct{}{}
	})
}

// A yes to an earlier question leaves one open whose tool has given up, too: the host hears
// that nobody waits.
func TestAYesForALaterConnectionThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, up, key := asking()
		s.asks.last = 1
		ctx, leave := context.WithCancel(t.Context())
		got := make(chan answered, 1)
		go func() { got <- s.ask(ctx, &patient{closed: true}, key.Name, key.Port) }()
		synctest.Wait()
		key.ID = 1
		if taken := s.answer(key, AllowOnce, ""); taken != 0 {
			t.Errorf("question %d has the answer", taken)
		}
		leave()
		<-got
		synctest.Wait()
		if !slices.Equal(up.notes, []string{"asked b.test", "left b.test"}) {
			t.Error(up.notes)
		}
	})
}

// A connection is closed for the relay from the moment on at which the tool closes it.
func TestAConnectionThatTheToolGivesUp(t *testing.T) {
	s, _ := newSession(t, deaf(), network.Limits{})
	for what, end := range map[string]func(*net.TCPConn) error{
		"close": (*net.TCPConn).Close, "reset": func(tool *net.TCPConn) error { reset(tool); return nil },
	} {
		c, tool := connected(t, s)
		if _, err := tool.Write([]byte("begun")); err != nil || c.gaveUp() {
			t.Errorf("%s: before: %v", what, err)
		}
		if err := end(tool); err != nil || !c.gaveUp() {
			t.Errorf("%s: after: %v", what, err)
		}
	}
}
