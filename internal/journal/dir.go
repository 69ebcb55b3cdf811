package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

const (
	// DatabaseName is the file in its folder that a journal cannot be without.
	DatabaseName = "journal.db"
	lockName     = "journal.lock"
)

// suffixes are those of the files that make up a database.
var suffixes = []string{"", "-wal", "-shm", "-journal"}

// PrepareDir makes dir, with mode 0700, or checks the one that is there, and returns its absolute path. It refuses one
// that belongs to somebody else than the user or root, or that others can write to.
func PrepareDir(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("no directory named")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return dir, errors.Join(checkDir(dir), checkDirOwner(dir))
}

// CheckDir says why PrepareDir, or the making of files there, would fail. It makes nothing.
func CheckDir(dir string) error {
	err := checkDir(dir)
	if errors.Is(err, fs.ErrNotExist) && filepath.Dir(dir) != dir {
		return checkWritable(firstParent(dir))
	}
	return errors.Join(err, checkDirOwner(dir), checkWritable(dir))
}

// firstParent is the nearest folder above dir that exists.
func firstParent(dir string) string {
	for absent(dir) && filepath.Dir(dir) != dir {
		dir = filepath.Dir(dir)
	}
	return dir
}

func checkWritable(dir string) error {
	const write, search = 2, 1
	if err := syscall.Access(dir, write|search); err != nil {
		return fmt.Errorf("%s is not writable: %w", dir, err)
	}
	return nil
}

// checkDir refuses a directory in which somebody else could exchange files.
func checkDir(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", dir)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("others can write to %s (mode %#o): chmod go-w %s", dir, info.Mode().Perm(), dir)
	}
	return nil
}

// checkDirOwner refuses to write in a directory of somebody else than root. Root may read there.
func checkDirOwner(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if uid := info.Sys().(*syscall.Stat_t).Uid; uid != 0 && int(uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to uid %d, not to %d: chown it, or name another directory", dir, uid, os.Geteuid())
	}
	return nil
}

// checkFiles refuses links and whatever else is not a plain file. It opens none: closing one would drop the locks that
// SQLite in this process may hold on it (POSIX locks belong to the process).
func checkFiles(dir string) error {
	for _, suffix := range suffixes {
		name := filepath.Join(dir, DatabaseName+suffix)
		info, err := os.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s is not a plain file (%v): remove it", name, info.Mode().Type())
		}
	}
	return nil
}

// tighten gives the database's files the mode 0600, and makes the database an empty file if it is missing, for SQLite
// would make it readable for others. SQLite gives the others the mode of the first.
func tighten(dir string) error {
	name := filepath.Join(dir, DatabaseName)
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		return f.Close()
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	for _, suffix := range suffixes {
		if err := os.Chmod(name+suffix, 0o600); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// emptied says that the database was cut to nothing, or away from its log, which SQLite would then delete.
func emptied(dir string) error {
	name := filepath.Join(dir, DatabaseName)
	if info, err := os.Lstat(name); err == nil && info.Size() == 0 {
		return fmt.Errorf("%w: it was cut to nothing", ErrCorrupt)
	}
	if wal, err := os.Lstat(name + "-wal"); err == nil && wal.Size() > 0 && absent(name) {
		return fmt.Errorf("%w: it is missing, and its log %s-wal is there", ErrCorrupt, DatabaseName)
	}
	return nil
}

// missing says that there is no database, but the checksums of one.
func missing(dir string) bool {
	return absent(filepath.Join(dir, DatabaseName)) && !absent(filepath.Join(dir, sumsName))
}

func absent(name string) bool {
	_, err := os.Lstat(name)
	return errors.Is(err, fs.ErrNotExist)
}

// moveAside renames the database's files to a name with the suffix, and returns that name, or the log's if there is no
// more than that.
func moveAside(dir, suffix string) (string, error) {
	name := filepath.Join(dir, DatabaseName)
	aside := name + suffix
	for n := 2; exists(aside); n++ {
		aside = fmt.Sprintf("%s%s.%d", name, suffix, n)
	}
	for _, s := range suffixes {
		if err := os.Rename(name+s, aside+s); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return aside, err
		}
	}
	if absent(aside) && !absent(aside+"-wal") {
		aside += "-wal"
	}
	return aside, errors.Join(dropSums(dir), pardon(dir))
}

func exists(name string) bool {
	for _, suffix := range suffixes {
		if _, err := os.Lstat(name + suffix); err == nil {
			return true
		}
	}
	return false
}
