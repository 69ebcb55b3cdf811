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
// and returns those that really are, with the reasons for the rest. Processes
// in the way are moved to a supervisor leaf first, as far as p allows: beside
// them cpu and pids could be enabled, but only for threads.
func enableControllers(base *dir, wanted []string, p placement) (got []string, err error) {
	offered, errOffered := base.fields("cgroup.controllers")
	enabled, errEnabled := base.fields("cgroup.subtree_control")
	if err := errors.Join(errOffered, errEnabled); err != nil {
		return nil, err
	}
	var missing []string
	for _, c := range wanted {
		if slices.Contains(enabled, c) {
			got = append(got, c)
		} else if slices.Contains(offered, c) {
			missing = append(missing, c)
		}
	}
	if len(missing) == 0 {
		return got, nil
	}
	if err := evacuate(base, p); err != nil {
		return got, err
	}
	for _, c := range missing {
		e := enableOne(base, c, p)
		if e == nil {
			got = append(got, c)
		}
		err = errors.Join(err, e)
	}
	return got, err
}

func (d *dir) fields(file string) ([]string, error) {
	s, err := d.read(file)
	return strings.Fields(s), err
}

// enableOne copes with a process that was born in base just now.
func enableOne(base *dir, controller string, p placement) error {
	for n := 0; ; n++ {
		err := base.write("cgroup.subtree_control", "+"+controller)
		if !errors.Is(err, unix.EBUSY) || n == maxEvacuations {
			return err
		}
		if err := evacuate(base, p); err != nil {
			return err
		}
	}
}

// evacuate moves base's processes to supervisor leaves until none is left.
func evacuate(base *dir, p placement) error {
	if p == placeRoot {
		return nil
	}
	for range maxEvacuations {
		pids, err := readPids(base)
		if err != nil || len(pids) == 0 {
			return err
		}
		if err := movePids(base, pids, p); err != nil {
			return err
		}
	}
	return occupied(base)
}

// movePids moves processes that may be ours to move.
func movePids(base *dir, pids []int, p placement) error {
	self := os.Getpid()
	if p == placeParent || p == placeOwnSelf && !slices.Contains(pids, self) {
		return occupied(base)
	}
	if p == placeOwnSelf {
		pids = []int{self}
	}
	return fillLeaf(base, func(leaf *dir) error { return moveAll(leaf, pids) })
}

// moveAll moves processes to leaf, those that still exist.
func moveAll(leaf *dir, pids []int) error {
	for _, pid := range pids {
		if err := leaf.write("cgroup.procs", strconv.Itoa(pid)); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("cannot move process %d out of the way: %w", pid, err)
		}
	}
	return nil
}

func occupied(base *dir) error {
	return &UnavailableError{"cgroup", base.path, "move the processes in it to a child cgroup", unix.EBUSY}
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
