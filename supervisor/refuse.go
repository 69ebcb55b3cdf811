package supervisor

import (
	"errors"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
)

// refuse makes the result of a call that never began.
func (c *Call) refuse(err error) {
	r := c.p.Blank()
	c.fillOutcome(r, outcome.Evidence{StartErr: err})
	if refused, ok := errors.AsType[*outcome.Refusal](err); ok {
		refused.Word(r, c.p.Terms(0))
	}
	c.p.Close()
	c.events.Publish(api.Event{Kind: api.EventQueued})
	c.publishResult(r)
	c.result = r
	close(c.over)
	close(c.done)
	close(c.gone)
}
