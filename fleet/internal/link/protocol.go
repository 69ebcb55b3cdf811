package link

import (
	"cmp"
	"fmt"

	"github.com/toolhost/toolhost/api"
)

// Protocol is what this release speaks. It grows with each change that the other side has to
// know; releases before there was a number have 0.
const Protocol = 4

// Release is what a party says of itself.
type Release struct {
	Version  string
	Protocol uint32
}

func (r Release) String() string {
	return fmt.Sprintf("toolhost %s (fleet protocol %d)", cmp.Or(api.Cut(r.Version, 64), "of unknown version"), r.Protocol)
}

// Unlike says why a worker and a caller make no calls with each other; empty if they do.
func Unlike(worker, caller Release) string {
	if worker.Protocol == caller.Protocol {
		return ""
	}
	return fmt.Sprintf("the worker is %s, and its caller %s: install the same version on both", worker, caller)
}
