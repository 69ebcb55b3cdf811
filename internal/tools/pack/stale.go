package pack

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// copyPrefix begins the names of the folders that packs are copied to. Each is
// locked by flock(2) for as long as its process lives: that holds across PID
// namespaces, and no process can die and leave it.
const copyPrefix = "toolhost-unpacked-"

// makeTries is for removers that hold a new folder before its maker does.
const makeTries = 100

// makeCopyDir makes an empty folder in parent, and locks it.
func makeCopyDir(parent string) (string, *os.File, error) {
	for range makeTries {
		dir, err := os.MkdirTemp(parent, copyPrefix)
		if err != nil {
			return "", nil, err
		}
		lock, err := lockNew(dir)
		if err != nil || lock != nil {
			return dir, lock, err
		}
	}
	return "", nil, errors.New("the folders for its copy are removed as soon as they are made")
}

// lockNew locks a new folder; nil if somebody has removed it meanwhile. Where a
// filesystem has no locks, nothing is held, and nobody removes what is there.
func lockNew(dir string) (*os.File, error) {
	lock, err := openDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(dir))
	}
	// A remover that has it is not waited for: it may be stopped in the middle.
	if errors.Is(flock(lock, syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK) || !isAt(lock, dir) {
		return nil, lock.Close()
	}
	return lock, nil
}

// removeStale removes the copies in parent that this user's dead processes have
// left. It is not a failure if that cannot be done.
func removeStale(parent string) {
	entries, _ := os.ReadDir(parent)
	for _, entry := range entries {
		if entry.IsDir() && strings.HasPrefix(entry.Name(), copyPrefix) {
			removeIfStale(filepath.Join(parent, entry.Name()))
		}
	}
}

func removeIfStale(dir string) {
	lock, err := openDir(dir)
	if err != nil {
		return
	}
	defer lock.Close()
	if ownedByUs(lock) && flock(lock, syscall.LOCK_EX|syscall.LOCK_NB) == nil && isAt(lock, dir) {
		_ = os.RemoveAll(dir)
	}
}

// openDir follows no link.
func openDir(dir string) (*os.File, error) {
	return os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
}

func flock(file *os.File, how int) error {
	for {
		if err := syscall.Flock(int(file.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func ownedByUs(file *os.File) bool {
	info, err := file.Stat()
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// isAt is whether path still is the open file.
func isAt(file *os.File, path string) bool {
	opened, err := file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(opened, there)
}
