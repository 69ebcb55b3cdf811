package supervisor

import "github.com/hashicorp/go-hclog"

// log is for what is worth to be told of the call; it happens seldom.
func (c *Call) log() hclog.Logger {
	args := c.request.LogArgs
	if len(args) == 0 {
		args = []any{"call", c.id}
	}
	return c.s.config.Logger.With(args...)
}
