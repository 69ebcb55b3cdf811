package prepare

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/text"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
)

// Where a confined call finds executables whose own path it cannot have, for they
// lie in the sandbox's own folders.
const (
	hiddenPrograms = "/.toolhost/bin/"
	hiddenSocket   = "/.toolhost/turns"
)

// surround plans the sandbox: what the policy grants, and the programs that
// the call cannot do without.
func (n *preparation) surround() error {
	policy := n.Sandbox
	if n.Request.Sandbox != nil {
		policy = *n.Request.Sandbox
	}
	resolved, err := n.guard.Resolve(policy)
	if err != nil {
		return outcome.Refuse(api.StatusStartFailed, api.ReasonPolicy, err)
	}
	n.Policy = resolved
	if err := n.CheckPolicy(resolved); err != nil {
		return err
	}
	n.Warnings = append(n.Warnings, resolved.Warnings()...)
	if err := n.keepOwn(&n.Policy, n.Work); err != nil {
		return outcome.Refuse(api.StatusStartFailed, api.ReasonPolicy, err)
	}
	if err := n.openFilesTo(); err != nil {
		return err
	}
	if err := n.openService(); err != nil {
		return err
	}
	programs, err := n.programs()
	if err != nil {
		return err
	}
	if n.Plan, err = n.Policy.Plan(n.Features(), n.task(programs)); err != nil {
		return outcome.Refuse(api.StatusStartFailed, planReason(err), err)
	}
	if n.NoCgroup && !n.Plan.Confined() {
		return outcome.Refuse(api.StatusStartFailed, api.ReasonPolicy, errHeldByNothing)
	}
	return n.findDir()
}

// planReason tells what the host lacks from what cannot be meant.
func planReason(err error) api.Reason {
	if _, missing := errors.AsType[*sandbox.MissingError](err); missing {
		return api.ReasonSandbox
	}
	return api.ReasonPolicy
}

func (n *preparation) task(programs []sandbox.Program) sandbox.Task {
	processBytes, tasks := n.rlimits()
	return sandbox.Task{
		ProcessBytes: processBytes, Tasks: tasks,
		Programs: programs, MemoryBytes: n.Bounds.MemoryBytes, CPUPercent: n.Bounds.CPUPercent,
		OpenFiles: n.Bounds.OpenFiles, Secrets: n.secretFiles(),
		Storage: sandbox.Storage{WorkspaceBytes: n.Bounds.WorkspaceBytes, WorkspaceInodes: n.Bounds.WorkspaceInodes, TmpBytes: n.Bounds.TmpBytes},
	}
}

// programs are the executables that must be shown to the call: copies from the
// store, whose bytes are the ones that were hashed.
func (n *preparation) programs() ([]sandbox.Program, error) {
	if n.Request.Command != nil {
		return n.commandPrograms()
	}
	if !n.Policy.Confines() {
		n.Path = n.Binary.Stored
		return nil, nil
	}
	n.Path = visiblePath(n.Binary.Path, n.Policy)
	return append(n.servicePrograms(), sandbox.Program{Source: n.Binary.Stored, Target: n.Path}), nil
}

// commandPrograms are those of a plain command; what runs it is in every call.
func (n *preparation) commandPrograms() ([]sandbox.Program, error) {
	n.Path = sandbox.CommandAdapter
	if err := n.placeCommand(); err != nil || !n.Policy.Confines() {
		return nil, err
	}
	list := n.servicePrograms()
	if n.command.Stored != "" {
		list = append(list, sandbox.Program{Source: n.command.Stored, Target: n.command.Path})
	}
	return list, nil
}

func (n *preparation) servicePrograms() []sandbox.Program {
	if n.Service == nil {
		return nil
	}
	return []sandbox.Program{{Source: n.Service.path, Target: hiddenSocket}}
}

// visiblePath is where a confined call sees a program of this path. Below a
// grant the links of the path are the grant's own.
func visiblePath(path string, policy sandbox.Resolved) string {
	if policy.Covers(path) {
		if real, err := filepath.EvalSymlinks(path); err == nil && policy.Covers(real) {
			return real
		}
		return hiddenPrograms + filepath.Base(path)
	}
	if sandbox.Showable(path) {
		return path
	}
	return hiddenPrograms + filepath.Base(path)
}

// placeCommand finds the command on the host where the call could not find it
// by itself: a path, a name of the caller's own PATH, or one whose hash is to be
// checked. It is copied only if it is not run from where it is.
func (n *preparation) placeCommand() error {
	want := n.Request.SHA256
	path, err := n.commandPath()
	if err != nil || path == "" && want == "" {
		return err
	}
	if path == "" {
		path = n.Request.Command.Argv[0]
	}
	if path, err = filepath.Abs(path); err != nil {
		return outcome.Refuse(api.StatusStartFailed, api.ReasonNotFound, err)
	}
	if want == "" && (!n.Policy.Confines() || n.Features().Runtime(path) || n.Policy.Covers(path)) {
		n.command.Path = path
		return nil
	}
	found, err := n.Binaries.Find(path)
	if refusal, ok := errors.AsType[*outcome.Refusal](err); ok && refusal.Reason == api.ReasonHost {
		return err
	} else if err != nil {
		return outcome.Refuse(api.StatusStartFailed, api.ReasonNotExecutable, fmt.Errorf("cannot execute %s: %w", n.Request.Command.Argv[0], err))
	}
	if err := found.Check(want); err != nil {
		return err
	}
	found.Path = visiblePath(found.Path, n.Policy)
	n.command = found
	return nil
}

// commandPath is where the host has a command that is not simply in the call's
// PATH; empty if it is.
func (n *preparation) commandPath() (string, error) {
	name := n.Request.Command.Argv[0]
	if strings.Contains(name, "/") {
		name = from(n.Request.Dir, name)
		if _, err := os.Stat(name); err != nil {
			return "", outcome.Refuse(api.StatusStartFailed, api.ReasonNotFound, fmt.Errorf("no command at %s: correct the path", n.Request.Command.Argv[0]))
		}
		return name, nil
	}
	if !n.Policy.Confines() || name == "" {
		return "", nil
	}
	if path := inPath(name); path != "" {
		if n.Request.SHA256 == "" {
			path = ""
		}
		return path, nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", outcome.Refuse(api.StatusStartFailed, api.ReasonNotFound, fmt.Errorf("no command %q in PATH: install it below /usr, or give its path", name))
	}
	return path, nil
}

func wrongHash(found Binary, want string) error {
	return fmt.Errorf("the tool %s has sha256 %s, not %s: it is not the binary that was allowed", found.Path, found.SHA256, want)
}

// findDir settles the working directory: what was asked for, else the host's
// own where the call sees it or something in it, else the workspace.
func (n *preparation) findDir() (err error) {
	dir := n.Request.Dir
	if dir == "" {
		here, err := os.Getwd()
		if err != nil {
			return outcome.Refuse(api.StatusStartFailed, api.ReasonDir, fmt.Errorf("cannot find the working directory: %w: change to a folder that exists", err))
		}
		dir = here
		if n.Plan.Confined() && !n.Policy.Covers(dir) && (dir == "/" || !n.Policy.Holds(dir)) {
			dir = sandbox.Workspace
		}
	}
	if n.Dir, err = filepath.Abs(dir); err != nil {
		return outcome.Refuse(api.StatusStartFailed, api.ReasonDir, err)
	}
	dir = n.Dir
	if n.Plan.Confined() && sandbox.OwnFolder(dir) {
		return nil
	}
	if n.Plan.Confined() && !n.Policy.Covers(dir) && !n.Policy.Holds(dir) {
		return outcome.Refuse(api.StatusStartFailed, api.ReasonDir, fmt.Errorf("the working directory %s is not granted to the call: grant it to read or to write", dir))
	}
	return checkDir(dir)
}

func checkDir(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return outcome.Refuse(api.StatusStartFailed, api.ReasonDir, fmt.Errorf("cannot use the working directory %s: %w", dir, text.Cause(err)))
	}
	if !info.IsDir() {
		return outcome.Refuse(api.StatusStartFailed, api.ReasonDir, fmt.Errorf("the working directory %s is not a folder", dir))
	}
	return nil
}

// Env is what the tool finds in its environment. Where a call stands is for nobody
// else to say.
func (n *Prepared) Env(handshake []string) []string {
	given := slices.DeleteFunc(slices.Concat(baseEnv(n.Plan.Confined()), n.Plan.Env(), n.Request.Env, n.secretEnv()), isOfCall)
	return lastOfEach(slices.Concat(given, n.placeEnv(), n.Service.env(), handshake))
}

func isOfCall(entry string) bool {
	name, _, _ := strings.Cut(entry, "=")
	return slices.Contains(api.CallVariables, name)
}

// lastOfEach leaves one entry for each variable, the last one: programs differ
// in which of several they take.
func lastOfEach(env []string) []string {
	at := map[string]int{}
	var kept []string
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		if i, ok := at[name]; ok {
			kept[i] = entry
			continue
		}
		at[name] = len(kept)
		kept = append(kept, entry)
	}
	return kept
}
