package network

import (
	"fmt"
	"slices"
)

// Exceeds returns an error for the first grant that the ceiling does not cover
// completely.
func Exceeds(ceiling, grants []Grant) error {
	for _, g := range grants {
		for _, port := range g.Ports {
			if !slices.ContainsFunc(ceiling, func(c Grant) bool { return c.covers(g, port) }) {
				return fmt.Errorf("the network grant %s goes beyond the ceiling on port %d: leave it out, or have the operator add it to limits.network", g, port)
			}
		}
	}
	return nil
}

// covers says whether all that g reaches on a port is reached by c, under no
// weaker checks.
func (c Grant) covers(g Grant, port uint16) bool {
	if !c.HasPort(port) || g.AnySNI && !c.AnySNI || c.TLS && !g.TLS && port != httpsPort {
		return false
	}
	outer, isNet := c.Prefix()
	inner, wantsNet := g.Prefix()
	if isNet || wantsNet {
		return isNet && wantsNet && outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
	}
	if !g.Wildcard() {
		return c.Matches(g.Host)
	}
	return c.Host == g.Host || c.Wildcard() && c.Matches(g.Host[len("*."):])
}
