// Package filelock waits for locks of files, as flock(2) has them, that other
// processes may hold.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/supervisor/internal/outcome"
)

// again is how often a lock that somebody has is tried again: a flock that
// waits could not be given up.
const again = 20 * time.Millisecond

// Acquire waits for the lock until ctx is over, and then returns its cause. The
// file is made if it is not there, and stays.
func Acquire(ctx context.Context, file string, shared bool) (release func(), err error) {
	how := syscall.LOCK_EX
	if shared {
		how = syscall.LOCK_SH
	}
	// A call waits behind those that came before it, or those that share the lock
	// would never let in one that does not.
	turn, err := openLocked(ctx, file+".turn", syscall.LOCK_EX)
	if err != nil {
		return nil, err
	}
	defer turn.Close()
	locked, err := openLocked(ctx, file, how)
	if err != nil {
		return nil, err
	}
	return func() { _ = locked.Close() }, nil
}

func openLocked(ctx context.Context, path string, how int) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, outcome.HostFailure(fmt.Errorf("cannot open the lock of the tool's data: %w", err))
	}
	if err := flock(ctx, file, how); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func flock(ctx context.Context, file *os.File, how int) error {
	tick := time.NewTicker(again)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(file.Fd()), how|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			return outcome.HostFailure(fmt.Errorf("cannot lock the tool's data (%s): %w", file.Name(), err))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
