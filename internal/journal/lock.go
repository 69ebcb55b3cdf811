package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// lock makes its holder the owner of a directory, until released or dead. The file stays: removing it would let two
// processes lock two files.
type lock struct {
	file *os.File
	// unclean: the last owner did not release the lock. pid is that owner's, 0 if unreadable.
	unclean bool
	pid     int
}

// takeLock fails with ErrOwned where there is an owner.
func takeLock(dir string) (*lock, error) {
	l, err := holdLock(dir)
	for tries := 0; errors.Is(err, ErrOwned) && !l.alive() && tries < maxAdoption; tries++ {
		time.Sleep(adoptionEvery)
		l, err = holdLock(dir)
	}
	if err != nil {
		return nil, err
	}
	// Always as long, and never cut first: there is no moment in which a dead owner looks like a released lock.
	_, err = l.file.WriteAt(fmt.Appendf(nil, "%-19d\n", os.Getpid()), 0)
	if isFull(err) {
		err = fmt.Errorf("%w: %w", ErrFull, err)
	}
	if err != nil {
		return nil, errors.Join(err, l.file.Close())
	}
	return l, nil
}

// A lock that is held, though the owner in it is dead, is a reader's for a moment.
const (
	adoptionEvery = 10 * time.Millisecond
	maxAdoption   = 500
)

// holdLock holds the lock without becoming the owner. Where there is one it fails with ErrOwned, and says which.
func holdLock(dir string) (*lock, error) {
	file, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	l := &lock{file: file}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	content, readErr := io.ReadAll(io.LimitReader(file, 64))
	l.pid, _ = strconv.Atoi(strings.TrimSpace(string(content)))
	l.unclean = len(content) > 0
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		err = fmt.Errorf("%w: process %d (%s)", ErrOwned, l.pid, file.Name())
	case err != nil:
		err = fmt.Errorf("cannot lock %s: %w", file.Name(), err)
	default:
		err = readErr
	}
	if err != nil {
		return l, errors.Join(err, file.Close())
	}
	return l, nil
}

// alive says whether the owner in the lock is a process.
func (l *lock) alive() bool { return l.pid > 0 && !errors.Is(syscall.Kill(l.pid, 0), syscall.ESRCH) }

// release gives the directory up; clean says that the database needs no check by the next owner.
func (l *lock) release(clean bool) error {
	var err error
	if clean {
		err = l.file.Truncate(0)
	}
	return errors.Join(err, l.file.Close())
}
