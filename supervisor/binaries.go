package supervisor

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// binary is an executable and its content's hash.
type binary struct {
	path, sha256 string
}

// fileIdentity changes whenever a file's content does: no one can set back a
// file's change time (inode(7)).
type fileIdentity struct {
	dev, ino     uint64
	size         int64
	mtime, ctime syscall.Timespec
}

// maxBinaries bounds the cache of hashes.
const maxBinaries = 256

// binaries remembers the hashes of executables that have not changed.
type binaries struct {
	mu     sync.Mutex
	hashes map[fileIdentity]string
}

func newBinaries() *binaries { return &binaries{hashes: map[fileIdentity]string{}} }

// find resolves a tool's path and hashes the file.
func (b *binaries) find(path string) (binary, error) {
	resolved, err := lookUp(path)
	if err != nil {
		return binary{}, err
	}
	file, err := os.Open(resolved)
	if err != nil {
		return binary{}, fmt.Errorf("cannot read the tool %s: %w", resolved, reason(err))
	}
	defer file.Close()
	id, err := identify(file)
	if err != nil {
		return binary{}, err
	}
	hash, err := b.hash(id, file)
	return binary{path: resolved, sha256: hash}, err
}

// lookUp says what is wrong with a path before the kernel does.
func lookUp(path string) (string, error) {
	if path == "" {
		return "", errors.New("no tool given: name a plugin's executable")
	}
	if !strings.Contains(path, "/") {
		found, err := exec.LookPath(path)
		if err != nil {
			return "", fmt.Errorf("no tool %q in PATH: give its path, such as ./%s", path, path)
		}
		path = found
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("no tool at %s: build it, or correct the path", path)
	case err != nil:
		return "", fmt.Errorf("cannot look at the tool %s: %w", path, reason(err))
	case info.IsDir():
		return "", fmt.Errorf("the tool %s is a folder: name the executable in it", path)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("the tool %s is no regular file: name an executable", path)
	case info.Mode()&0o111 == 0:
		return "", fmt.Errorf("the tool %s is not executable: run chmod +x on it", path)
	}
	return filepath.Abs(path)
}

// reason is a path error without its path, which the caller names.
func reason(err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err
	}
	return err
}

func identify(file *os.File) (fileIdentity, error) {
	info, err := file.Stat()
	if err != nil {
		return fileIdentity{}, fmt.Errorf("cannot look at the tool %s: %w", file.Name(), reason(err))
	}
	st := info.Sys().(*syscall.Stat_t)
	return fileIdentity{dev: st.Dev, ino: st.Ino, size: st.Size, mtime: st.Mtim, ctime: st.Ctim}, nil
}

func (b *binaries) hash(id fileIdentity, file *os.File) (string, error) {
	b.mu.Lock()
	known, ok := b.hashes[id]
	b.mu.Unlock()
	if ok {
		return known, nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", fmt.Errorf("cannot read the tool %s: %w", file.Name(), reason(err))
	}
	sum := hex.EncodeToString(h.Sum(nil))
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.hashes) >= maxBinaries {
		clear(b.hashes)
	}
	b.hashes[id] = sum
	return sum, nil
}

func baseName(path string) string {
	if path == "" {
		return ""
	}
	return filepath.Base(path)
}
