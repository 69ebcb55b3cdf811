// Package binaries gives tests the module's commands and example tools as binaries.
package binaries

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// Bin is the variable that names a folder of binaries of the present source, as `make test` sets it.
const Bin = "TEST_TOOLHOST_BIN"

// below are the folders of the module that have commands in them.
var below = []string{"cmd", "examples/tools", "examples/hosts"}

// Into puts the commands of these names into dir: as copies from the folder that TEST_TOOLHOST_BIN names, where it has them,
// and else built, without cgo. It needs the go command only for those that it builds.
func Into(dir string, names ...string) error {
	missing, err := copyFrom(os.Getenv(Bin), dir, names)
	if err != nil || len(missing) == 0 {
		return err
	}
	packages, err := packagesOf(missing)
	if err != nil {
		return err
	}
	return Build(dir+"/", packages...)
}

// Build is `go build -o out packages`, without cgo, its output in the error.
func Build(out string, packages ...string) error {
	cmd := exec.Command("go", append([]string{"build", "-o", out}, packages...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build %s: %w\n%s", strings.Join(packages, " "), err, said)
	}
	return nil
}

// copyFrom copies what bin has of names to dir, and returns the others.
func copyFrom(bin, dir string, names []string) (missing []string, err error) {
	if bin == "" {
		return names, nil
	}
	for _, name := range names {
		switch err := copyFile(filepath.Join(bin, name), filepath.Join(dir, name)); {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, name)
		case err != nil:
			return nil, fmt.Errorf("cannot take %s from %s: %w", name, bin, err)
		}
	}
	return missing, nil
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return Write(to, content)
}

// Write makes a file that can be executed at once: no child that is being forked
// meanwhile holds it open for writing (ETXTBSY, execve(2)).
func Write(to string, content []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(to, content, 0o755)
}

// packagesOf are the folders of the commands of these names.
func packagesOf(names []string) ([]string, error) {
	_, file, _, _ := runtime.Caller(0)
	root := filepath.Join(filepath.Dir(file), "../../..")
	var packages []string
	for _, name := range names {
		for _, folder := range below {
			if path := filepath.Join(root, folder, name); exists(filepath.Join(path, "main.go")) {
				packages = append(packages, path)
			}
		}
	}
	if len(packages) != len(names) {
		return nil, fmt.Errorf("cannot build %s: not all of them are commands of %s", strings.Join(names, ", "), strings.Join(below, ", "))
	}
	return packages, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
