package turn

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/toolhost/toolhost/api"
)

// reaching is a call that wants a name, and waits so many milliseconds for an
// answer, or until there is one.
func reaching(id string, leave int) Call {
	return asking(id, "", func(a *fakeArgs) { a.Reach, a.Leave, a.Ms = "b.test:443", leave, 1 })
}

// A question about a name outlives its call: what is answered then counts for the
// next connection, or for the rest of the turn.
func TestAReachsQuestionStaysOpen(t *testing.T) {
	for name, test := range map[string]struct {
		answer       api.Answer
		second, last string
	}{
		"once":   {api.Answer{Approve: true}, "answered: true", "denied: cancelled"},
		"turn":   {api.Answer{Approve: true, Always: true}, "answered: true", "answered: true"},
		"denied": {api.Answer{}, "denied: cancelled", "denied: cancelled"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			turn := w.begin(t, Spec{})
			said := func(id string, want string) {
				if r := run(t, turn, reaching(id, 50))[0]; !strings.Contains(r.Text(), want) {
					t.Errorf("%s: %s said %q, want %q", name, id, r.Text(), want)
				}
			}
			said("a", "denied: cancelled")
			info, _ := turn.Info()
			if len(info.PendingInteractions) != 1 || info.PendingInteractions[0].Kind != api.KindApproval {
				t.Fatalf("%s: after the call: %+v", name, info.PendingInteractions)
			}
			if err := turn.Answer(info.PendingInteractions[0].ID, test.answer); err != nil {
				t.Error(err)
			}
			said("b", test.second)
			said("c", test.last)
			turn.End()
			if info, _ := turn.Info(); len(info.PendingInteractions) != 0 {
				t.Errorf("%s: after the turn: %+v", name, info.PendingInteractions)
			}
		})
	}
}

// One that is asked again takes the place of the one before it.
func TestAReachIsAskedAboutOnceAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turn := newWorld().begin(t, Spec{})
		defer turn.End()
		run(t, turn, reaching("a", 50))
		go answer(t, turn, "b", api.Answer{Approve: true})
		if r := run(t, turn, reaching("b", 0))[0]; !strings.Contains(r.Text(), "answered: true") {
			t.Error(r.Text())
		}
		if info, _ := turn.Info(); len(info.PendingInteractions) != 0 {
			t.Errorf("%+v", info.PendingInteractions)
		}
	})
}
