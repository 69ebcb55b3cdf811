package call

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/api"
)

// hintAtNetwork has a failed call's result say which name was refused, and how an
// operator grants it.
func hintAtNetwork(r *api.Result) {
	if r.Network == nil || !slices.Contains(failedByItself, r.Status) {
		return
	}
	i := slices.IndexFunc(r.Network.Refused, func(f api.NetworkRefusal) bool { return f.Grant() != "" })
	if i < 0 {
		return
	}
	f := r.Network.Refused[i]
	what := strings.TrimSpace(f.Name + " " + f.Address)
	if f.Port != 0 {
		what += fmt.Sprintf(" port %d", f.Port)
	}
	if more := len(r.Network.Refused) - 1; more > 0 {
		what += fmt.Sprintf(" (and %d more)", more)
	}
	grant := f.Grant()
	hint := fmt.Sprintf("the network refused %s (%s): if the call may reach that, have the operator grant it (--net %s, or network: [%q] in toolhost.yaml)", what, f.Why, grant, grant)
	if r.Retry.Hint != "" {
		hint = r.Retry.Hint + ", or: " + hint
	}
	r.Retry.Hint = hint
}

// notGranted begins the reasons of what no grant is for.
const notGranted = api.NotGranted
