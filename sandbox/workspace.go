package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/toolhost/toolhost/sandbox/internal/cause"
)

// Workspace is a call's own folder: its HOME, and its working directory unless
// a granted path covers the caller's.
const Workspace = "/workspace"

// resolveWorkspace finds the real path of a folder that is to be the workspace.
// The zygote checks it again (sandbox/launcher), for it may have changed by then.
func resolveWorkspace(path string) (string, error) {
	source, err := findWorkspace(path)
	if err != nil {
		return "", fmt.Errorf("cannot keep the workspace in %s: %w", path, err)
	}
	return source, nil
}

func findWorkspace(path string) (source string, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return "", err
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", fmt.Errorf("%w; make the folder first, with mode 0700", cause.Of(err))
	}
	source = filepath.Join(parent, filepath.Base(path))
	info, err := os.Lstat(source)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w; make the folder first, with mode 0700", cause.Of(err))
	case !info.IsDir():
		return "", errors.New("it is no folder, or a link; name the folder itself")
	case source == "/" || slices.ContainsFunc(kernelTrees, func(tree string) bool { return within(source, tree) }):
		return "", errors.New("that is the system's; name a folder of its own")
	}
	return source, checkOwner(info.Sys().(*syscall.Stat_t))
}

// checkOwner wants the caller's folder. Root's must also be of its group, for
// what an id-mapped mount does not map cannot be written to.
func checkOwner(st *syscall.Stat_t) error {
	uid, gid := os.Geteuid(), os.Getegid()
	switch {
	case int(st.Uid) != uid:
		return fmt.Errorf("it belongs to user %d; name a folder of user %d", st.Uid, uid)
	case uid == 0 && int(st.Gid) != gid:
		return fmt.Errorf("it belongs to group %d, and could not be written to; give it to group %d (chgrp)", st.Gid, gid)
	}
	return nil
}

// UnconfinedError says that a policy without a sandbox was to give a call what
// only a sandbox has.
type UnconfinedError struct {
	// Thing is what the call was to have.
	Thing string
}

func (e *UnconfinedError) Error() string {
	return fmt.Sprintf("cannot give the call %s: tier %s has no files of the call's own; choose tier %s, or do without", e.Thing, TierNone, TierNative)
}
