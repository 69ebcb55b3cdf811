package cgroup

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// maxSignalPasses bounds the chase after processes born meanwhile.
	maxSignalPasses = 3
	// maxPidfds bounds the descriptors held at a time.
	maxPidfds = 64
)

// Processes lists the group's processes as cgroup2 knows them. It is a
// snapshot: processes come and go.
func (g *Group) Processes() (pids []int, err error) {
	err = g.useMembers(func() error {
		pids, err = g.members()
		return err
	})
	return pids, err
}

// Signal sends sigs in this order to each process of the group, except those for
// which skip, if not nil, returns true. It looks for new processes at most three
// times, and returns the PIDs of the processes that it signalled. It opens a pidfd
// and then checks membership again, so that it never signals a process outside of
// the group with a reused PID. It is not an error if a process died meanwhile; after
// another failure (EPERM) it still signals the rest. skip must not call methods of g.
func (g *Group) Signal(sigs []syscall.Signal, skip func(pid int) bool) (signalled []int, err error) {
	seen := map[int]bool{}
	err = g.useMembers(func() error {
		var errs []error
		for range maxSignalPasses {
			fresh, err := g.freshPids(seen, skip)
			if err != nil || len(fresh) == 0 {
				return errors.Join(append(errs, err)...)
			}
			for batch := range slices.Chunk(fresh, maxPidfds) {
				reached, err := g.signalBatch(batch, sigs)
				signalled, errs = append(signalled, reached...), append(errs, err)
			}
		}
		return errors.Join(errs...)
	})
	return signalled, err
}

// freshPids lists members not seen before and marks them as seen.
func (g *Group) freshPids(seen map[int]bool, skip func(int) bool) ([]int, error) {
	pids, err := g.members()
	if err != nil {
		return nil, err
	}
	fresh := slices.DeleteFunc(pids, func(pid int) bool { return seen[pid] || skip != nil && skip(pid) })
	for _, pid := range fresh {
		seen[pid] = true
	}
	return fresh, nil
}

func (g *Group) signalBatch(pids []int, sigs []syscall.Signal) (reached []int, err error) {
	held := map[int]int{}
	defer func() {
		for _, fd := range held {
			_ = unix.Close(fd)
		}
	}()
	var errs []error
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if err == nil {
			held[pid] = fd
		} else if err != unix.ESRCH {
			errs = append(errs, fmt.Errorf("cannot hold process %d: %w", pid, err))
		}
	}
	// Whoever is still listed now is the process that we hold, or that one is
	// dead and its number reused by a member: then the signal goes nowhere.
	members, err := g.members()
	if err != nil {
		return nil, err
	}
	for _, pid := range members {
		if fd, ok := held[pid]; ok {
			sent, err := signalOne(pid, fd, sigs)
			if errs = append(errs, err); sent {
				reached = append(reached, pid)
			}
		}
	}
	return reached, errors.Join(errs...)
}

func signalOne(pid, fd int, sigs []syscall.Signal) (sent bool, err error) {
	for _, sig := range sigs {
		err := unix.PidfdSendSignal(fd, sig, nil, 0)
		if err == unix.ESRCH {
			return sent, nil
		}
		if err != nil {
			return sent, fmt.Errorf("cannot send %v to process %d: %w", sig, pid, err)
		}
		sent = true
	}
	return sent, nil
}
