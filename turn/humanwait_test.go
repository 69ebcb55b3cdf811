package turn

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/api"
)

// Who shows how long a call has run can leave out what it waited for humans.
func TestTheWaitForAHumanIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{})
		defer turn.End()
		wait := func() int64 {
			synctest.Wait()
			info, _ := turn.Info()
			if len(info.CurrentTools) != 1 {
				t.Fatalf("calls %+v", info.CurrentTools)
			}
			return info.CurrentTools[0].HumanWaitMs
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			run(t, turn, asking("a", "", nil))
		}()
		synctest.Wait()
		if got := wait(); got != 0 {
			t.Errorf("at once: %d ms", got)
		}
		time.Sleep(5 * time.Second)
		if got := wait(); got != 5000 {
			t.Errorf("while it waits: %d ms", got)
		}
		answer(t, turn, "a", api.Answer{Approve: true, By: "me"})
		time.Sleep(500 * time.Millisecond) // of the second that it goes on for
		if got := wait(); got != 5000 {
			t.Errorf("afterwards: %d ms", got)
		}
		<-done
	})
}
