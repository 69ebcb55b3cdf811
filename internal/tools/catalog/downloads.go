package catalog

import (
	"cmp"
	"strings"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/text"
	"github.com/toolhost/toolhost/internal/tools/config"
)

// startFailure is a server's failed start with the remedy for this configuration:
// what downloads its server in a sandbox without network never starts, nor does what
// asks somebody before it begins.
func startFailure(entry config.Tool, failed *api.Result) *api.Result {
	hint := cmp.Or(entry.Downloads(), withoutNetwork(entry, failed))
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

// withoutNetwork is the remedy for a server that says so and has no network; empty for
// others.
func withoutNetwork(entry config.Tool, failed *api.Result) string {
	if !entry.Offline() || failed.ToolError == nil || !text.Unreached(failed.ToolError.Message) {
		return ""
	}
	return "the server has no network: grant it the names that it asks, such as network: [example.com]"
}
