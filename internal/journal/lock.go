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
	file, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	l := &lock{file: file}
	if err := l.take(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return l, nil
}

func (l *lock) take() error {
	err := syscall.Flock(int(l.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) { // perhaps by a reader, which looks for a moment whether there is an owner
		time.Sleep(time.Millisecond)
		err = syscall.Flock(int(l.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	content, readErr := io.ReadAll(io.LimitReader(l.file, 64))
	pid, _ := strconv.Atoi(strings.TrimSpace(string(content)))
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return fmt.Errorf("%w: process %d (%s)", ErrOwned, pid, l.file.Name())
	case err != nil:
		return fmt.Errorf("cannot lock %s: %w", l.file.Name(), err)
	case readErr != nil:
		return readErr
	}
	l.unclean, l.pid = len(content) > 0, pid
	// Always as long, and never cut first: there is no moment in which a dead owner looks like a released lock.
	_, err = l.file.WriteAt(fmt.Appendf(nil, "%-19d\n", os.Getpid()), 0)
	if isFull(err) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}

// ownerless says that nobody is known to own a directory.
func ownerless(dir string) bool {
	file, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer file.Close()
	return syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil
}

// release gives the directory up; clean says that the database needs no check by the next owner.
func (l *lock) release(clean bool) error {
	var err error
	if clean {
		err = l.file.Truncate(0)
	}
	return errors.Join(err, l.file.Close())
}
