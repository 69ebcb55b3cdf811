package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/internal/atomicfile"
)

// condemnedName is the file by which it is known that a database is damaged, until it is moved aside.
const condemnedName = "journal.damaged"

// verdict is what the file holds: that of an earlier toolhost why alone, as text.
type verdict struct {
	Why string `json:"why"`
	// File is the database that it is about: another one, such as a backup, may be put in its place.
	File *fileState `json:"file,omitempty"`
}

// fileState tells a file from one that was written to or put in its place. Copying one over another keeps the inode,
// but not the time.
type fileState struct {
	Inode    uint64    `json:"inode"`
	Bytes    int64     `json:"bytes"`
	Modified time.Time `json:"modified"`
}

// databaseState is that of the database in dir, or nil.
func databaseState(dir string) *fileState {
	info, err := os.Lstat(filepath.Join(dir, DatabaseName))
	if err != nil {
		return nil
	}
	return &fileState{info.Sys().(*syscall.Stat_t).Ino, info.Size(), info.ModTime().UTC()}
}

// condemn remembers that the database of dir is damaged.
func condemn(dir string, why error) error {
	return verdict{Why: why.Error()}.write(dir)
}

// condemnClosed has a verdict go on where closing has written the log to the database.
func condemnClosed(dir string) error {
	v := readVerdict(dir)
	if v == nil {
		return nil
	}
	return v.write(dir)
}

func (v verdict) write(dir string) error {
	v.File = databaseState(dir)
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, condemnedName), raw, atomicfile.Options{Unsynced: true})
}

func readVerdict(dir string) *verdict {
	raw, err := os.ReadFile(filepath.Join(dir, condemnedName))
	if err != nil {
		return nil
	}
	v := verdict{}
	if json.Unmarshal(raw, &v) != nil {
		v.Why = string(raw)
	}
	return &v
}

// condemned says why the database of dir is known to be damaged; nil if it is not.
func condemned(dir string) error {
	v := readVerdict(dir)
	if v == nil {
		return nil
	}
	if now := databaseState(dir); v.File != nil && now != nil && *now != *v.File {
		return nil // it is about the one whose place this one has taken
	}
	return fmt.Errorf("%w: %s", ErrCorrupt, v.Why)
}

// pardon forgets a database that was moved aside, or replaced.
func pardon(dir string) error {
	if err := os.Remove(filepath.Join(dir, condemnedName)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
