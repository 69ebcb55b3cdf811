package call

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/text"
)

// hintAtNetwork has a result say which name was refused, and how an operator grants it: as
// what to do next where that may be why the call failed, and as a note to one that went
// well, for which it may not have mattered. So it does where a call has no network, and
// has failed by words that are for that.
func hintAtNetwork(r *api.Result) {
	switch {
	case r.Network == nil:
		return
	case r.Network.Mode == "none" && slices.Contains(failedByItself, r.Status) && lacksNetwork(r):
		r.Retry.Hint = joined(r.Retry.Hint, api.NoNetwork+": if it may reach somebody, have the operator grant that (--net NAME, or network: [NAME] in toolhost.yaml)")
		return
	case len(r.Network.Refused) == 0:
		return
	}
	refused, grantable := refusedByNetwork(r.Network.Refused)
	switch {
	case r.Status == api.StatusOK:
		r.Warnings = append(r.Warnings, refused)
	case !grantable || r.Status != api.StatusTimeout && !slices.Contains(failedByItself, r.Status):
	default:
		r.Retry.Hint = joined(r.Retry.Hint, refused)
	}
}

func joined(hint, more string) string {
	if hint == "" {
		return more
	}
	return hint + ", or: " + more
}

func lacksNetwork(r *api.Result) bool {
	said := r.Output.Stderr.Tail[max(0, len(r.Output.Stderr.Tail)-maxNamedText):]
	if said == "" {
		said = r.Output.Stderr.Head[max(0, len(r.Output.Stderr.Head)-maxNamedText):]
	}
	return text.Unreached(said) || r.ToolError != nil && text.Unreached(r.ToolError.Message[:min(len(r.ToolError.Message), maxNamedText)])
}

// refusedByNetwork is one line about the first refusal that a grant would have prevented,
// or else about the first.
func refusedByNetwork(refused []api.NetworkRefusal) (line string, grantable bool) {
	f := refused[max(0, slices.IndexFunc(refused, func(f api.NetworkRefusal) bool { return f.Grant() != "" }))]
	what := strings.TrimSpace(f.Name + " " + f.Address)
	if f.Port != 0 {
		what += fmt.Sprintf(" port %d", f.Port)
	}
	if more := len(refused) - 1; more > 0 {
		what += fmt.Sprintf(" (and %d more)", more)
	}
	line = fmt.Sprintf("the network refused %s (%s)", what, f.Why)
	grant := f.Grant()
	if grant == "" {
		return line, false
	}
	return line + fmt.Sprintf(": if the call may reach that, have the operator grant it (--net %s, or network: [%q] in toolhost.yaml)", grant, grant), true
}

// notGranted begins the reasons of what no grant is for.
const notGranted = api.NotGranted
