package supervisor

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

// surroundings are what a call will find itself in.
type surroundings struct {
	service *service // nil where the tool has nothing to ask of its host
	plan    *sandbox.Plan
	policy  sandbox.Resolved
	// path is the plugin's executable, dir the working directory, as the tool
	// sees them.
	path, dir string
}

// surround plans the sandbox: what the policy grants, and the programs that
// the call cannot do without.
func (c *Call) surround() error {
	policy := c.s.config.Sandbox
	if c.request.Sandbox != nil {
		policy = *c.request.Sandbox
	}
	resolved, err := policy.Resolve()
	if err != nil {
		return outcome.Refuse(api.StatusStartFailed, api.ReasonPolicy, err)
	}
	c.policy = resolved
	c.warnings = append(c.warnings, resolved.Warnings()...)
	if err := c.s.keepOwn(&resolved); err != nil {
		return outcome.Refuse(api.StatusStartFailed, api.ReasonPolicy, err)
	}
	if err := c.openFilesTo(resolved); err != nil {
		return err
	}
	if err := c.openService(resolved); err != nil {
		return err
	}
	programs, err := c.programs(resolved)
	if err != nil {
		return err
	}
	if c.plan, err = resolved.Plan(c.s.offered(), c.task(programs)); err != nil {
		return outcome.Refuse(api.StatusStartFailed, planReason(err), err)
	}
	if c.s.config.NoCgroup && !c.plan.Confined() {
		return outcome.Refuse(api.StatusStartFailed, api.ReasonPolicy, errHeldByNothing)
	}
	return c.findDir(resolved)
}

// planReason tells what the host lacks from what cannot be meant.
func planReason(err error) api.Reason {
	if _, missing := errors.AsType[*sandbox.MissingError](err); missing {
		return api.ReasonSandbox
	}
	return api.ReasonPolicy
}

func (c *Call) task(programs []sandbox.Program) sandbox.Task {
	processBytes, tasks := c.rlimits()
	return sandbox.Task{
		ProcessBytes: processBytes, Tasks: tasks,
		Programs: programs, MemoryBytes: c.limits.MemoryBytes, CPUPercent: c.limits.CPUPercent,
		OpenFiles: c.limits.OpenFiles, Secrets: c.secretFiles(),
		Storage: sandbox.Storage{WorkspaceBytes: c.limits.WorkspaceBytes, WorkspaceInodes: c.limits.WorkspaceInodes, TmpBytes: c.limits.TmpBytes},
	}
}

// programs are the executables that must be shown to the call: copies from the
// store, whose bytes are the ones that were hashed.
func (c *Call) programs(policy sandbox.Resolved) ([]sandbox.Program, error) {
	if c.request.Command != nil {
		return c.commandPrograms(policy)
	}
	if !policy.Confines() {
		c.path = c.binary.stored
		return nil, nil
	}
	c.path = visiblePath(c.binary.path, policy)
	return append(c.servicePrograms(), sandbox.Program{Source: c.binary.stored, Target: c.path}), nil
}

// commandPrograms are those of a plain command; what runs it is in every call.
func (c *Call) commandPrograms(policy sandbox.Resolved) ([]sandbox.Program, error) {
	c.path = sandbox.CommandAdapter
	if err := c.placeCommand(policy); err != nil || !policy.Confines() {
		return nil, err
	}
	list := c.servicePrograms()
	if c.command.stored != "" {
		list = append(list, sandbox.Program{Source: c.command.stored, Target: c.command.path})
	}
	return list, nil
}

func (c *Call) servicePrograms() []sandbox.Program {
	if c.service == nil {
		return nil
	}
	return []sandbox.Program{{Source: c.service.path, Target: hiddenSocket}}
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
func (c *Call) placeCommand(policy sandbox.Resolved) error {
	want := c.request.SHA256
	path, err := c.commandPath(policy)
	if err != nil || path == "" && want == "" {
		return err
	}
	if path == "" {
		path = c.request.Command.Argv[0]
	}
	if path, err = filepath.Abs(path); err != nil {
		return outcome.Refuse(api.StatusStartFailed, api.ReasonNotFound, err)
	}
	if want == "" && (!policy.Confines() || c.s.offered().Runtime(path) || policy.Covers(path)) {
		c.command.path = path
		return nil
	}
	found, err := c.s.binaries.find(path)
	if err != nil {
		return outcome.Refuse(api.StatusStartFailed, api.ReasonNotExecutable, fmt.Errorf("cannot execute %s: %w", c.request.Command.Argv[0], err))
	}
	if want != "" && !strings.EqualFold(want, found.sha256) {
		return outcome.Refuse(api.StatusPolicyViolation, api.ReasonSHA256, wrongHash(found, want))
	}
	found.path = visiblePath(found.path, policy)
	c.command = found
	return nil
}

// commandPath is where the host has a command that is not simply in the call's
// PATH; empty if it is, or is nowhere.
func (c *Call) commandPath(policy sandbox.Resolved) (string, error) {
	name := c.request.Command.Argv[0]
	if strings.Contains(name, "/") {
		if c.request.Dir != "" && !filepath.IsAbs(name) {
			name = filepath.Join(c.request.Dir, name)
		}
		if _, err := os.Stat(name); err != nil {
			return "", outcome.Refuse(api.StatusStartFailed, api.ReasonNotFound, fmt.Errorf("no command at %s: correct the path", c.request.Command.Argv[0]))
		}
		return name, nil
	}
	if !policy.Confines() || name == "" {
		return "", nil
	}
	for _, dir := range filepath.SplitList(sandbox.Path) {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			if c.request.SHA256 != "" {
				return path, nil
			}
			return "", nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", nil // the adapter says so, as a shell would
	}
	return path, nil
}

func wrongHash(found binary, want string) error {
	return fmt.Errorf("the tool %s has sha256 %s, not %s: it is not the binary that was allowed", found.path, found.sha256, want)
}

// sha256 is that of what is executed.
func (c *Call) sha256() string {
	if c.request.Command != nil {
		return c.command.sha256
	}
	return c.binary.sha256
}

// argv is the command's own argument vector, with the path that it was found at.
func (c *Call) argv() []string {
	argv := slices.Clone(c.request.Command.Argv)
	switch {
	case c.command.path == "":
	case c.plan.Confined() || c.command.stored == "":
		argv[0] = c.command.path
	default:
		argv[0] = c.command.stored
	}
	return argv
}

// findDir settles the working directory: what was asked for, else the host's
// own where the call sees it or something in it, else the workspace.
func (c *Call) findDir(policy sandbox.Resolved) (err error) {
	dir := c.request.Dir
	if dir == "" {
		here, err := os.Getwd()
		if err != nil {
			return outcome.Refuse(api.StatusStartFailed, api.ReasonDir, fmt.Errorf("cannot find the working directory: %w", err))
		}
		dir = here
		if c.plan.Confined() && !policy.Covers(dir) && (dir == "/" || !policy.Holds(dir)) {
			dir = sandbox.Workspace
		}
	}
	if c.dir, err = filepath.Abs(dir); err != nil {
		return outcome.Refuse(api.StatusStartFailed, api.ReasonDir, err)
	}
	dir = c.dir
	if c.plan.Confined() && sandbox.OwnFolder(dir) {
		return nil
	}
	if c.plan.Confined() && !policy.Covers(dir) && !policy.Holds(dir) {
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

// environment is what the tool finds in its own. Where a call stands is for nobody
// else to say.
func (c *Call) environment(handshake []string) []string {
	given := slices.DeleteFunc(slices.Concat(baseEnv(c.plan.Confined()), c.plan.Env(), c.request.Env, c.secretEnv()), isOfCall)
	return lastOfEach(slices.Concat(given, c.placeEnv(), c.service.env(), handshake))
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
