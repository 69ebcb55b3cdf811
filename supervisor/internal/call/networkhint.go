package call

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/api"
)

// hintAtNetwork has a result say which name was refused, and how an operator grants it: as
// what to do next where that may be why the call failed, and as a note to one that went
// well, for which it may not have mattered.
func hintAtNetwork(r *api.Result) {
	if r.Network == nil || len(r.Network.Refused) == 0 {
		return
	}
	text, grantable := refusedByNetwork(r.Network.Refused)
	switch {
	case r.Status == api.StatusOK:
		r.Warnings = append(r.Warnings, text)
	case !grantable || r.Status != api.StatusTimeout && !slices.Contains(failedByItself, r.Status):
	case r.Retry.Hint != "":
		r.Retry.Hint += ", or: " + text
	default:
		r.Retry.Hint = text
	}
}

// refusedByNetwork is one line about the first refusal that a grant would have prevented,
// or else about the first.
func refusedByNetwork(refused []api.NetworkRefusal) (text string, grantable bool) {
	f := refused[max(0, slices.IndexFunc(refused, func(f api.NetworkRefusal) bool { return f.Grant() != "" }))]
	what := strings.TrimSpace(f.Name + " " + f.Address)
	if f.Port != 0 {
		what += fmt.Sprintf(" port %d", f.Port)
	}
	if more := len(refused) - 1; more > 0 {
		what += fmt.Sprintf(" (and %d more)", more)
	}
	text = fmt.Sprintf("the network refused %s (%s)", what, f.Why)
	grant := f.Grant()
	if grant == "" {
		return text, false
	}
	return text + fmt.Sprintf(": if the call may reach that, have the operator grant it (--net %s, or network: [%q] in toolhost.yaml)", grant, grant), true
}

// notGranted begins the reasons of what no grant is for.
const notGranted = api.NotGranted
