package fleet

import (
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet/internal/place"
	"github.com/toolhost/toolhost/fleet/internal/start"
	"github.com/toolhost/toolhost/fleet/internal/stream"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
	"github.com/toolhost/toolhost/supervisor"
)

// remote is one call on its way to a worker and back. Its goroutine owns it, but for the
// queue.
type remote struct {
	f       *Fleet
	call    *Call
	request supervisor.Request
	where   place.Want
	queue

	wire     []byte
	state    start.Caller
	attempts []*attempt
	tried    []string
	refusals []string
	began    time.Duration
	placed   time.Duration // when the go went
	receiver stream.Receiver
	partial  partial
	result   []byte
	started  *fleetv1.Started
	gone     *gone
	answered time.Duration // when the worker last said anything of it
	sent     time.Duration // when a control was last sent
	goes     int
	aborted  int
	reason   api.Reason
	events   relay
	failed   *api.Result // of what ended it here
}

// gone says why a call is lost.
type gone struct {
	reason  api.Reason
	running string
}
