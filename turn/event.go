package turn

import (
	"time"

	"github.com/toolhost/toolhost/api"
)

// Record is an event as it is shown, with what only the host is given.
type Record struct {
	api.Record
	// Result is the call's, of tool_finished and tool_failed.
	Result *api.Result
	// Asked is when the call of Result came, TraceParent its own, and Trace what
	// Config.Trace has made of that, if it was begun. They are for Config.Observe: what is
	// replayed has them no more.
	Asked              time.Time
	TraceParent, Trace string
	// Fresh: the id of the turn was made for it, so that no other has it; of turn_start.
	Fresh bool
}

// Journal keeps records before they are shown. Append stores them, in order,
// or fails as a whole. It is called from one goroutine per turn.
type Journal interface {
	Append(records ...Record) error
}
