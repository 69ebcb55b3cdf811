package supervisor

import "github.com/hashicorp/go-hclog"

// log returns the call's logger; only unusual events are logged.
func (c *Call) log() hclog.Logger {
	args := c.p.Request.LogArgs
	if len(args) == 0 {
		args = []any{"call", c.id}
	}
	return c.s.config.Logger.With(args...)
}
