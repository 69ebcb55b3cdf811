package prepare

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/text"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
	"github.com/toolhost/toolhost/supervisor/internal/store"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// Binary is an executable: Path is where it was found, Stored the copy whose
// bytes were hashed and that is executed.
type Binary struct{ Path, SHA256, Stored string }

// Binaries keeps copies of what is executed.
type Binaries struct{ store *store.Store }

// OpenBinaries opens the folder of copies.
func OpenBinaries(dir string) (*Binaries, error) {
	opened, err := store.Open(dir, 0)
	if err != nil {
		return nil, fmt.Errorf("%w; or name another folder for copies of tools (StoreDir, dirs.store in toolhost.yaml)", err)
	}
	return &Binaries{opened}, nil
}

// Find resolves a tool's path and stores the file. An error is an *outcome.Refusal.
func (b *Binaries) Find(path string) (Binary, error) {
	resolved, err := lookUp(path)
	if err != nil {
		return Binary{}, outcome.Refuse(api.StatusStartFailed, api.ReasonTool, err)
	}
	entry, err := b.store.Add(resolved)
	if _, own := errors.AsType[*store.FolderError](err); own {
		return Binary{}, outcome.HostFailure(err)
	} else if err != nil {
		return Binary{}, outcome.Refuse(api.StatusStartFailed, api.ReasonTool, err)
	}
	return Binary{Path: resolved, SHA256: entry.SHA256, Stored: entry.Path}, nil
}

// Program finds what a call of the request executes, as far as the host can tell: of an
// Adapter it is what follows "--".
func (b *Binaries) Program(request spec.Request) (Binary, error) {
	if request.Command == nil && !request.Tool.Adapter {
		return b.Find(request.Tool.Path)
	}
	argv := request.Tool.Args[slices.Index(request.Tool.Args, "--")+1:]
	if request.Command != nil {
		argv = request.Command.Argv
	}
	if len(argv) == 0 {
		return b.Find("")
	}
	if name := argv[0]; strings.Contains(name, "/") {
		return b.Find(from(request.Dir, name))
	}
	return b.Find(cmp.Or(inPath(argv[0]), argv[0]))
}

// from is where the path of a command leads from a call's folder; empty is the host's own.
func from(dir, path string) string {
	if dir == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// inPath is a command in the PATH of calls that are confined; empty if it is not there.
func inPath(name string) string {
	for _, dir := range filepath.SplitList(sandbox.Path) {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	return ""
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
		return "", fmt.Errorf("the tool %s is not executable: run chmod +x on it, or if it is to be a pack, make it a plain tar (not empty or compressed)", path)
	}
	return filepath.Abs(path)
}
