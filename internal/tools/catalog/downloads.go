package catalog

import (
	"strings"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/tools/config"
)

// startFailure is a server's failed start with the remedy for this configuration:
// what downloads its server in a sandbox without network never starts.
func startFailure(entry config.Tool, failed *api.Result) *api.Result {
	hint := entry.Downloads()
	if hint == "" || failed.Status != api.StatusStartFailed {
		return failed
	}
	r := *failed
	said, _, _ := strings.Cut(r.Message, " Next: ")
	r.Retry.Hint, r.Message = hint, said+" Next: "+hint+"."
	if r.ToolError != nil {
		own := *r.ToolError
		line, rest, more := strings.Cut(own.Message, "\n")
		if own.Message = line + "; " + hint; more {
			own.Message += "\n" + rest
		}
		r.ToolError = &own
	}
	return &r
}
