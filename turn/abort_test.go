package turn

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/api"
)

// A call keeps its grace though its end is told by several ways; a second wish to end its
// turn, or a parent of that, takes it.
func TestOneEndIsOneAbort(t *testing.T) {
	const grace, killed = 20 * time.Second, 0
	for name, c := range map[string]struct {
		end  func(w *world, parent, child *Turn)
		want time.Duration
	}{
		"a parent's abort": {func(_ *world, parent, child *Turn) {
			parent.Abort(api.ReasonUser)
			child.Abort(api.ReasonParent)     // as the call that began it ends
			child.Abort(api.ReasonDisconnect) // and so does its connection
			parent.End()
		}, grace},
		"a host that stops": {func(w *world, _, child *Turn) {
			child.Abort(api.ReasonShutdown)
			w.Close()
		}, grace},
		"its own abort, then the parent's": {func(_ *world, parent, child *Turn) {
			child.Abort(api.ReasonUser)
			parent.Abort(api.ReasonUser)
		}, grace},
		"an abort, and what it brings with it": {func(_ *world, _, child *Turn) {
			child.Abort(api.ReasonUser)
			child.AbortOnce(api.ReasonUser)
		}, grace},
		"two of the parent": {func(_ *world, parent, _ *Turn) {
			parent.Abort(api.ReasonUser)
			parent.Abort(api.ReasonUser)
		}, killed},
		"a wish behind the host's end": {func(_ *world, _, child *Turn) {
			child.Abort(api.ReasonShutdown)
			child.Abort(api.ReasonUser)
		}, killed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				parent := w.begin(t, Spec{})
				child := w.begin(t, Spec{ParentID: parent.ID()})
				defer parent.End()
				defer child.End()
				time.AfterFunc(time.Second, func() { c.end(w, parent, child) })
				began := time.Now()
				run(t, child, Call{ID: "a", Tool: "work", Arguments: []byte(`{"ms":60000,"grace":20000}`)})
				if got := time.Since(began) - time.Second; got != c.want {
					t.Errorf("over %s after its end began, want %s", got, c.want)
				}
			})
		})
	}
}
