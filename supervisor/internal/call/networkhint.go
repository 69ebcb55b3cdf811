package call

import (
	"fmt"
	"net/netip"
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
	i := slices.IndexFunc(r.Network.Refused, func(f api.NetworkRefusal) bool { return grantFor(f) != "" })
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
	grant := grantFor(f)
	hint := fmt.Sprintf("the network refused %s (%s): if the call may reach that, have the operator grant it (--net %s, or network: [%q] in toolhost.yaml)", what, f.Why, grant, grant)
	if r.Retry.Hint != "" {
		hint = r.Retry.Hint + ", or: " + hint
	}
	r.Retry.Hint = hint
}

// grantFor is the short form of the grant that a refusal lacks; empty where none
// would help.
func grantFor(f api.NetworkRefusal) string {
	host := f.Name
	if addr, err := netip.ParseAddr(f.Address); err == nil {
		if host = addr.String(); addr.Is6() && f.Port != 0 {
			host = "[" + host + "]"
		}
	}
	switch {
	case host == "" || strings.Contains(host, "?"):
		return ""
	case strings.HasPrefix(f.Why, notGranted), f.Name != "" && f.Address != "":
	default:
		return "" // a name that was said in TLS or HTTP, or a limit
	}
	if f.Port == 0 || f.Port == 443 || f.Port == 80 {
		return strings.Trim(host, "[]")
	}
	return fmt.Sprintf("%s:%d", host, f.Port)
}

// notGranted begins the reasons of what no grant is for.
const notGranted = "not granted"
