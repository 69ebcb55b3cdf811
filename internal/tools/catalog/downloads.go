package catalog

import (
	"cmp"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/api"
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

// unreached are the words of servers that have not reached somebody.
var unreached = []string{"EAI_AGAIN", "ENOTFOUND", "ENETUNREACH", "fetch failed", "getaddrinfo", "Name or service not known", "Temporary failure in name resolution", "network is unreachable"}

// withoutNetwork is the remedy for a server that says so and has no network; empty for
// others.
func withoutNetwork(entry config.Tool, failed *api.Result) string {
	says := func(words string) bool {
		return failed.ToolError != nil && strings.Contains(failed.ToolError.Message, words)
	}
	if !entry.Offline() || !slices.ContainsFunc(unreached, says) {
		return ""
	}
	return "the server has no network: grant it the names that it asks, such as network: [example.com]"
}
