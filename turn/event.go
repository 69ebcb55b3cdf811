package turn

import (
	"time"

	"github.com/toolhost/toolhost/api"
)

// Record is an api.Record with fields for the host only.
type Record struct {
	api.Record
	// Result is the call's result, for tool_finished and tool_failed.
	Result *api.Result
	// Asked is when the call of Result was requested, TraceParent is Call.TraceParent, and
	// Trace the value of Config.Trace for it, if the call was begun. They are set for
	// Config.Observe only, not in replayed records.
	Asked              time.Time
	TraceParent, Trace string
	// Fresh, of turn_start, is set if the turn's ID was made for it, so that it is unique.
	Fresh bool
}

// Journal stores records before they are shown. Append stores all of them, in
// order, or none. Each turn calls it from one goroutine.
type Journal interface {
	Append(records ...Record) error
}
