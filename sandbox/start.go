package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sandbox/internal/wire"
)

// LauncherTasks bounds the tasks that the launcher adds to a call's cgroup. The
// cgroup's pids limit begins as the tool's limit plus this.
const LauncherTasks = wire.Tasks

// CommandAdapter is the path, in every call, of the program that runs a plain
// command as a tool. Its first argument is CommandMode; the command follows. It is
// the launcher's own image (sandbox/launcher/command.c).
const (
	CommandAdapter = ownImage
	CommandMode    = wire.ModeCommand
)

// ownImage is what a launcher's child executes to become the launcher's program.
const ownImage = "/proc/self/exe"

// Into calls birth, which forks exactly one process, with the cgroups for that
// process (see cgroup.Group.Fork): the cgroup2 directory, the v1 `tasks` files that
// the forking thread enters for the fork, and those by which it returns. A nil Into
// means the host's own cgroups.
type Into func(birth func(dir *os.File, enter, leave []*os.File) error) error

// Spec describes one start. It is read during Start only.
type Spec struct {
	// Plan is the plan of the sandbox.
	Plan *Plan
	// Path is the executable's path in the sandbox, Args its argument vector
	// (including Args[0]), Env its environment (Plan.Env is not added), and Dir
	// its working directory.
	Path string
	Args []string
	Env  []string
	Dir  string
	// Stdio are the tool's descriptors 0 to 2, Extra those from 3 on. Start
	// does not close them.
	Stdio [3]*os.File
	Extra []*os.File
	// SocketDir is an existing folder for the tool's socket if the plan is not
	// confined; in a mount namespace a tmpfs covers it. Empty means none. A confined
	// tool has Plan.SocketDir.
	SocketDir string
	// Timer is the time after which the launcher ends the tree, even if the host is
	// stopped or starved; 0 means never.
	Timer time.Duration
	// Movable is set if SetTimer will be called often, as for successive calls. Without a
	// Lease the host then needs one more descriptor, and moving does not wake the launcher.
	Movable bool
	// Waits makes the sandbox for a program that Process.Begin starts later. Path, Args, Env,
	// Dir and Timer are then ignored. The plan must be confined.
	Waits bool
	// Lease, if not nil, makes the launcher end the tree when the lease expires.
	Lease *Lease
	// KillFile opens cgroup.kill of the call's cgroup. It is called if the plan has
	// no PID namespace.
	KillFile func() (*os.File, error)
	Into     Into
}

// SetupError is the launcher's or zygote's report that a tool could not be
// started. The tool never causes it.
type SetupError struct {
	// Step is the step that failed.
	Step string
	Err  error
}

func (e *SetupError) Error() string {
	if remedy := e.remedy(); remedy != "" {
		return e.what() + "; " + remedy
	}
	return e.what()
}

// what says what has failed, and no remedy.
func (e *SetupError) what() string { return fmt.Sprintf("cannot %s: %v", e.Step, e.Err) }

func (e *SetupError) Unwrap() error { return e.Err }

// Executing reports whether the execution of the tool's program failed.
func (e *SetupError) Executing() bool { return e.Step == wire.StepExecute }

// TooFewFiles reports whether the call's limit of open files was too low to make the sandbox:
// the launcher opens files for Landlock under that limit.
func (e *SetupError) TooFewFiles() bool {
	return e.Step == wire.StepLandlock && errors.Is(e.Err, unix.EMFILE)
}

// ErrDiedAtBirth means that the launcher ended without a report, as it does if its
// cgroup was killed before.
var ErrDiedAtBirth = errors.New("the launcher died before it could report")

// ErrUncertain means that the start was given up before it was complete. Its
// processes end at once, but the tool may have started.
var ErrUncertain = errors.New("the start was given up before it was complete; the tool may have begun")

// Start starts a launcher, which starts the tool, and returns once the launcher is
// born; Process.Started waits for the tool. ctx bounds only Start. An error means
// that nothing runs, and a process that is still being born dies at once.
//
// If the zygote failed (it died, hangs, or has no descriptors left) and certainly no
// process was born, Start retries once with a new zygote.
func (h *Host) Start(ctx context.Context, spec Spec) (*Process, error) {
	p, again, err := h.start(ctx, spec)
	if again && ctx.Err() == nil {
		p, _, err = h.start(ctx, spec)
	}
	return p, err
}

func (h *Host) start(ctx context.Context, spec Spec) (p *Process, again bool, err error) {
	zygote, slots, err := h.use()
	if err != nil {
		return nil, false, err
	}
	release := func() { h.release(zygote) }
	who, err := spec.Plan.who(slots)
	if err != nil {
		release()
		return nil, false, err
	}
	control, theirs, err := socketPair()
	if err != nil {
		who.release()
		release()
		return nil, false, err
	}
	defer theirs.Close()
	p = newProcess(control, who, zygote, release, spec)
	p.host = h
	if err = p.timer.share(&spec); err == nil {
		err = spec.bear(ctx, zygote, p, theirs)
	}
	if err == nil {
		return p, false, nil
	}
	gone := errors.Is(err, errZygoteGone) && !errors.Is(err, ErrUncertain)
	if again = gone || p.stillborn() && zygote.worn(); again {
		h.retire(zygote)
	}
	p.Abandon()
	return nil, again, spec.explain(err)
}

// bear asks for the launcher and waits for its birth.
func (s Spec) bear(ctx context.Context, z *zygote, p *Process, control *os.File) error {
	files, free, err := s.files(control, p.who)
	defer free()
	if err != nil {
		return err
	}
	sources, done, err := s.Plan.sources()
	if err != nil {
		return err
	}
	defer done()
	into := s.Into
	if into == nil {
		into = func(birth func(*os.File, []*os.File, []*os.File) error) error { return birth(nil, nil, nil) }
	}
	return into(func(dir *os.File, enter, _ []*os.File) error {
		request := s.birth(p.who)
		request.Cgroup, request.Enter = dir != nil, int64(len(enter))
		if err := z.send(ctx, request, slices.Concat([]*os.File{control}, groupDir(dir), enter, sources, files)); err != nil {
			return err
		}
		_ = control.Close() // or its end would not be seen
		return p.awaitBirth(ctx)
	})
}

func groupDir(dir *os.File) []*os.File {
	if dir == nil {
		return nil
	}
	return []*os.File{dir}
}

func (s Spec) birth(who identity) wire.Birth {
	b := wire.Birth{Flags: s.Plan.flags, DropGroups: s.Plan.confine, Lone: s.Plan.root.Lone(), Stage: s.Plan.stage}
	if who.mapped {
		b.User = true
		b.InsideUID, b.InsideGID, b.UID, b.GID = int64(who.insideUID), int64(who.insideGID), int64(who.uid), int64(who.gid)
	}
	return b
}

func (s Spec) socketDir() string { return cmp.Or(s.Plan.SocketDir(), s.SocketDir) }

func (s Spec) options(who identity) wire.Options {
	var held int64
	if who.slot.lock != nil {
		held++
	}
	if s.Lease != nil {
		held++
	}
	const both = unix.CLONE_NEWPID | unix.CLONE_NEWNS
	namespaced := s.Plan.flags&both == both
	tool := s.tool()
	if s.Waits {
		tool = wire.Tool{}
	}
	return wire.Options{
		Namespaced: namespaced, Proc: s.Plan.lifetimes.proc, Kill: !namespaced && s.KillFile != nil,
		Extra: int64(len(s.Extra)), Held: held, Lease: s.Lease != nil, Waits: s.Waits, Staged: int64(len(s.Plan.stage)),
		SocketDir: s.socketDir(), Tool: tool, Confine: s.Plan.confine, Root: s.Plan.root,
	}
}

// tool is what the launcher starts.
func (s Spec) tool() wire.Tool {
	return wire.Tool{TimerNS: int64(s.Timer), Dir: s.Dir, Path: s.Path, Args: s.Args, Env: s.Env}
}

// files are the launcher's descriptors in the order of wire.Options. The lock
// of the call's user is held by the launcher too, so until both are gone.
func (s Spec) files(control *os.File, who identity) (files []*os.File, free func(), err error) {
	var own []*os.File
	free = func() {
		for _, f := range own {
			_ = f.Close()
		}
	}
	options := s.options(who)
	described, err := textFile("toolhost-spec", options.Encode())
	if err != nil {
		return nil, free, err
	}
	own = append(own, described)
	files = append(s.Stdio[:len(s.Stdio):len(s.Stdio)], control, described)
	if options.Kill {
		kill, err := s.KillFile()
		if err != nil {
			return nil, free, err
		}
		own = append(own, kill)
		files = append(files, kill)
	}
	files = append(files, s.Extra...)
	if who.slot.lock != nil {
		files = append(files, who.slot.lock)
	}
	if s.Lease != nil {
		lease, err := s.Lease.share()
		if err != nil {
			return nil, free, err
		}
		own = append(own, lease)
		files = append(files, lease)
	}
	return files, free, nil
}

// explained is a SetupError in words for its start.
type explained struct {
	text  string
	setup *SetupError
}

func (e *explained) Error() string { return e.text }
func (e *explained) Unwrap() error { return e.setup }

// explain names the remedy for what can go wrong with a birth.
func (s Spec) explain(err error) error {
	setup, ok := errors.AsType[*SetupError](err)
	if !ok || errors.Is(err, ErrUncertain) {
		return err
	}
	if setup.Step == wire.StepClone && Remedy(setup.Err) == "" && s.Plan.flags == 0 && !s.Plan.user {
		return &explained{setup.what(), setup} // whose remedy is for namespaces
	}
	if setup.Executing() || setup.remedy() != "" {
		return setup
	}
	path, mapping := strings.CutPrefix(setup.Step, wire.StepMap)
	if !mapping {
		var staging bool
		if path, staging = strings.CutPrefix(setup.Step, wire.StepStage); !staging {
			return setup
		}
	}
	err = s.explainTree(path, mapping, setup.Err)
	if s.Plan.held.get(path) == nil { // a program of the host's, which the call has not asked for
		return err
	}
	return &explained{err.Error(), setup}
}
