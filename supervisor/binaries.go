package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/toolhost/toolhost/internal/text"
	"github.com/toolhost/toolhost/supervisor/internal/store"
)

// binary is an executable: path is where it was found, stored the copy whose
// bytes were hashed and that is executed.
type binary struct {
	path, sha256, stored string
}

// binaries keeps copies of what is executed.
type binaries struct{ store *store.Store }

func openBinaries(dir string) (*binaries, error) {
	opened, err := store.Open(dir, 0)
	if err != nil {
		return nil, fmt.Errorf("%w; or name another folder for copies of tools (StoreDir, dirs.store in toolhost.yaml)", err)
	}
	return &binaries{opened}, nil
}

// find resolves a tool's path and stores the file.
func (b *binaries) find(path string) (binary, error) {
	resolved, err := lookUp(path)
	if err != nil {
		return binary{}, err
	}
	entry, err := b.store.Add(resolved)
	if err != nil {
		return binary{}, err
	}
	return binary{path: resolved, sha256: entry.SHA256, stored: entry.Path}, nil
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
		return "", fmt.Errorf("cannot look at the tool %s: %w", path, text.Cause(err))
	case info.IsDir():
		return "", fmt.Errorf("the tool %s is a folder: name the executable in it", path)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("the tool %s is not a regular file: name an executable", path)
	case info.Mode()&0o111 == 0:
		return "", fmt.Errorf("the tool %s is not executable: run chmod +x on it", path)
	}
	return filepath.Abs(path)
}
