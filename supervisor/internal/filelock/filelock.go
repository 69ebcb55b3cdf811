// Package filelock waits for locks of files, as flock(2) has them, that other
// processes may hold.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/supervisor/internal/outcome"
)

// again is how often a lock that somebody has is tried again: a flock that
// waits could not be given up.
const again = 20 * time.Millisecond

// Acquire waits for the lock until ctx is over, and then returns its cause. The
// file is made if it is not there, and stays. held is called if somebody has the lock
// when the caller's turn has come; from then on it is Awaited.
func Acquire(ctx context.Context, file string, shared bool, held func()) (release func(), err error) {
	how := syscall.LOCK_EX
	if shared {
		how = syscall.LOCK_SH
	}
	// A call waits behind those that came before it, or those that share the lock
	// would never let in one that does not.
	turn, err := openLocked(ctx, file+turnSuffix, syscall.LOCK_EX, func() {})
	if err != nil {
		return nil, err
	}
	defer turn.Close()
	locked, err := openLocked(ctx, file, how, held)
	if err != nil {
		return nil, err
	}
	return func() { _ = locked.Close() }, nil
}

// turnSuffix is of the file whose lock the next one has, until it has the lock itself.
const turnSuffix = ".turn"

// Awaited reports whether somebody waits for the lock.
func Awaited(file string) bool {
	turn, err := os.OpenFile(file+turnSuffix, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return false // nobody has made it yet
	}
	defer turn.Close()
	return errors.Is(syscall.Flock(int(turn.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

func openLocked(ctx context.Context, path string, how int, held func()) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, outcome.HostFailure(fmt.Errorf("cannot open the lock of the tool's data: %w", err))
	}
	if err := flock(ctx, file, how, held); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func flock(ctx context.Context, file *os.File, how int, held func()) error {
	told := sync.OnceFunc(held)
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
		told()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
