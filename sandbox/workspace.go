package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/text"
	"github.com/toolhost/toolhost/sandbox/internal/lookup"
)

// Workspace is the path of a call's private folder: its HOME, and its working
// directory unless the caller's is granted.
const Workspace = "/workspace"

// openWorkspace opens the folder that is to be the workspace. The zygote checks
// its owner again (sandbox/launcher), for that may change.
func (r *Resolved) openWorkspace(j *judge) (string, error) {
	path, err := filepath.Abs(r.policy.Workspace)
	if err != nil {
		return "", fmt.Errorf("cannot keep the workspace in %s: %w", r.policy.Workspace, err)
	}
	o, err := findWorkspace(j, path)
	if err != nil {
		return "", fmt.Errorf("cannot keep the workspace in %s: %w", r.policy.Workspace, err)
	}
	r.held.keep(o)
	return o.path, nil
}

var errWorkspace = errors.New("it is not a folder, or a link; name the folder itself")

func findWorkspace(j *judge, path string) (*opened, error) {
	o, err := openOnce(path, true)
	switch {
	case errors.Is(err, lookup.ErrLink):
		return nil, errWorkspace
	case err != nil:
		return nil, fmt.Errorf("%w; make the folder first, with mode 0700", text.Cause(err))
	}
	if err := j.checkWorkspace(o); err != nil {
		_ = o.file.Close()
		return nil, err
	}
	return o, nil
}

func (j *judge) checkWorkspace(o *opened) error {
	switch {
	case j.checkIdentity(o, o.path, true) != nil, j.checkBelow(o, true) != nil:
		return errors.New("that is the system's; name a folder of its own")
	case !o.folder():
		return errWorkspace
	}
	return checkOwner(&o.stat)
}

// checkOwner wants the caller's folder. Root's must also be of its group, for
// what an id-mapped mount does not map cannot be written to.
func checkOwner(st *unix.Stat_t) error {
	uid, gid := os.Geteuid(), os.Getegid()
	switch {
	case int(st.Uid) != uid:
		return fmt.Errorf("it belongs to user %d; name a folder of user %d", st.Uid, uid)
	case uid == 0 && int(st.Gid) != gid:
		return fmt.Errorf("it belongs to group %d, and could not be written to; give it to group %d (chgrp)", st.Gid, gid)
	}
	return nil
}

// UnconfinedError means that a policy without a sandbox asks for something that
// only a sandbox has.
type UnconfinedError struct {
	// Thing is what the policy asks for.
	Thing string
}

func (e *UnconfinedError) Error() string {
	return fmt.Sprintf("cannot give the call %s: tier %s has no files of the call's own; choose tier %s, or do without", e.Thing, TierNone, TierNative)
}
