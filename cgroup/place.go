package cgroup

import (
	"path"
	"strings"
)

// placeFacts is what decides where in cgroup2 we may work.
type placeFacts struct {
	own             string // our cgroup path as our namespace sees it
	trueRoot        bool   // own is the hierarchy's real root: exempt from the rule above
	delegated       bool   // own carries systemd's delegation mark
	parentDelegated bool   // the same for own's parent
	writable        bool   // we may make children in own and enable controllers
	systemd         bool   // systemd manages this host
	uid             int
}

// placement is how to get a base directory.
type placement int

const (
	placeOwn        placement = iota + 1 // own, after moving all its processes to a leaf
	placeOwnSelf                         // own, moving only ourselves: others in it aren't ours to move
	placeRoot                            // own is the true root: nothing to move
	placeParent                          // we already sit in a supervisor leaf of the base
	placeAskSystem                       // ask the system manager for a scope
	placeAskUser                         // ask the user's manager
	placeImpossible                      // own can't be used and nobody can be asked
)

// decidePlace picks the base. An undelegated cgroup on a systemd host belongs
// to systemd even if we are root and could write to it.
func decidePlace(f placeFacts) placement {
	atNamespaceRoot := f.own == "/" && !f.trueRoot
	inLeaf := leafName().MatchString(path.Base(f.own))
	switch {
	case f.trueRoot && f.writable:
		return placeRoot
	case inLeaf && (f.parentDelegated || path.Dir(f.own) == "/"):
		return placeParent
	case f.delegated && f.writable, atNamespaceRoot && f.writable:
		return placeOwn
	case f.systemd && f.uid == 0:
		return placeAskSystem
	case f.systemd:
		return placeAskUser
	case f.writable:
		return placeOwnSelf
	}
	return placeImpossible
}

// isOwnScope tells whether a cgroup path ends in a scope that we asked for.
func isOwnScope(p, unit string) bool { return strings.HasSuffix(p, "/"+unit) }
