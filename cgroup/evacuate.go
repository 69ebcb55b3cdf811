package cgroup

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxEvacuations bounds the race with processes that are born while we move
// their parents.
const maxEvacuations = 10

// enableControllers makes the wanted controllers available to base's children
// and returns those that really are. Processes in the way are moved to the
// supervisor leaf as far as p allows.
func enableControllers(base *dir, wanted []string, p placement) ([]string, error) {
	offered, err := base.fields("cgroup.controllers")
	if err != nil {
		return nil, err
	}
	enabled, err := base.fields("cgroup.subtree_control")
	if err != nil {
		return nil, err
	}
	var got []string
	var errs []error
	for _, c := range wanted {
		if !slices.Contains(offered, c) {
			continue
		}
		if !slices.Contains(enabled, c) {
			err = enableOne(base, c, p)
		}
		if err == nil {
			got = append(got, c)
		}
		errs, err = append(errs, err), nil
	}
	if len(got) == 0 && len(wanted) > 0 {
		return nil, errors.Join(errs...)
	}
	return got, nil
}

func (d *dir) fields(file string) ([]string, error) {
	s, err := d.read(file)
	return strings.Fields(s), err
}

func enableOne(base *dir, controller string, p placement) error {
	err := base.write("cgroup.subtree_control", "+"+controller)
	for n := 0; errors.Is(err, unix.EBUSY) && n < maxEvacuations; n++ {
		if e := evacuate(base, p); e != nil {
			return e
		}
		err = base.write("cgroup.subtree_control", "+"+controller)
	}
	return err
}

// evacuate moves base's processes to its supervisor leaf.
func evacuate(base *dir, p placement) error {
	if p != placeOwn && p != placeOwnSelf {
		return &UnavailableError{"cgroup", base.path, "move the processes in it to a child cgroup", unix.EBUSY}
	}
	leaf, err := freshLeaf(base, supervisorLeaf)
	if err != nil {
		return err
	}
	defer leaf.close()
	if p == placeOwnSelf {
		return leaf.write("cgroup.procs", strconv.Itoa(os.Getpid()))
	}
	pids, err := readPids(base)
	if err != nil {
		return err
	}
	for _, pid := range pids {
		if err := leaf.write("cgroup.procs", strconv.Itoa(pid)); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("cannot move process %d out of the way: %w", pid, err)
		}
	}
	return nil
}

// freshLeaf opens a leaf for ourselves, made anew where nobody is in it: one
// that was killed before would doom our children (see Root.Refresh).
func freshLeaf(base *dir, name string) (*dir, error) {
	_ = base.rmdir(name)
	if err := base.mkdir(name, 0o755); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, err
	}
	return base.sub(name)
}

// readPids lists a cgroup2 directory's processes. Those outside our PID
// namespace, which the kernel shows as 0, are left out.
func readPids(d *dir) ([]int, error) {
	s, err := d.read("cgroup.procs")
	return parsePids(s), err
}

func parsePids(s string) []int {
	var pids []int
	for line := range strings.Lines(s) {
		if pid, err := strconv.Atoi(strings.TrimSuffix(line, "\n")); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}
