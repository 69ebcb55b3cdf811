package turn

import (
	"context"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// place says whether a call has its place among those of other turns. The first
// time it begins to wait for that.
func (b *batch) place(e *entry) bool {
	if e.call.Place == nil || e.placed {
		return true
	}
	if e.placing == nil {
		var ctx context.Context
		ctx, e.placing = context.WithCancel(context.Background())
		b.t.helpers.Go(func() {
			err := e.call.Place(ctx)
			b.t.post(func() { b.hasPlace(e, err) })
		})
	}
	return false
}

// hasPlace goes on with a call that has waited for its place.
func (b *batch) hasPlace(e *entry, err error) {
	if e.stage != stageReady {
		return
	}
	if e.placed = err == nil; !e.placed {
		b.finish(e, unplaced(e.call, err))
	}
	b.advance()
	b.endIfOver()
}

func unplaced(c Call, err error) *api.Result {
	return supervisor.Verdict{
		CallID: c.ID, Tool: c.Tool, Status: api.StatusOverloaded, Reason: api.ReasonSession,
		Message: notMade(c, err.Error()),
	}.Result()
}
