package daemon

import (
	"errors"
	"fmt"
	"os/user"
	"strconv"

	"github.com/toolhost/toolhost/internal/tools/config"
)

// CheckGroups finds the groups of a configuration that this machine does not have: whom
// access means to bound would be bounded by nothing.
func CheckGroups(loaded *config.Loaded) error {
	var problems config.Problems
	check := func(path, name string) {
		if _, err := groupID(name); err != nil {
			problems = append(problems, loaded.Problem(path, err))
		}
	}
	check("socket.group", loaded.Daemon.SocketGroup)
	for _, a := range loaded.Access {
		check("access."+a.Name+".group", a.GroupName)
	}
	return problems.Err()
}

// groupID returns the id of a group; -1 for an empty name.
func groupID(name string) (int, error) {
	if name == "" {
		return -1, nil
	}
	if gid, err := strconv.ParseUint(name, 10, 31); err == nil {
		return int(gid), nil
	}
	g, err := user.LookupGroup(name)
	if _, unknown := errors.AsType[user.UnknownGroupError](err); unknown {
		return 0, fmt.Errorf("unknown group %q: make it, or write another one's name or number", name)
	}
	if err != nil {
		return 0, fmt.Errorf("cannot look up the group %q: %w; write its number", name, err)
	}
	return strconv.Atoi(g.Gid)
}
