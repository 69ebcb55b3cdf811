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

// LauncherTasks bounds the tasks that the launcher adds to a call's group. A
// group's pids limit is the tool's own plus this until Process.Tasks says how
// many they are.
const LauncherTasks = wire.Tasks

// CommandAdapter is the program that runs a plain command as a tool, in every
// call, and CommandMode its first argument; those behind it are the command's. It
// is the launcher's own image, executed anew (sandbox/launcher/command.c).
const (
	CommandAdapter = ownImage
	CommandMode    = wire.ModeCommand
)

// ownImage is what a launcher's child executes to become the launcher's program.
const ownImage = "/proc/self/exe"

// Into runs birth, which asks for exactly one process, with the cgroups that
// it is to be born in (cgroup.Group.Fork): the cgroup2 directory, the v1 `tasks`
// files that the forking thread enters for that moment, and those by which it
// returns. nil is the host's own cgroups.
type Into func(birth func(dir *os.File, enter, leave []*os.File) error) error

// Spec is one start. It is read during Start only.
type Spec struct {
	// Plan says what the tool can see and do.
	Plan *Plan
	// Path is the executable as the tool sees it, Args its whole argument
	// vector (Args[0] too), Env its whole environment (Plan.Env is not added),
	// Dir its working directory.
	Path string
	Args []string
	Env  []string
	Dir  string
	// Stdio are the tool's descriptors 0 to 2, Extra those from 3 on. Start
	// does not close them.
	Stdio [3]*os.File
	Extra []*os.File
	// SocketDir is an existing folder in which the tool makes its socket where
	// the plan is not confined, covered by a tmpfs where there is a mount
	// namespace; empty for none. A confined tool has Plan.SocketDir.
	SocketDir string
	// Timer ends the tree from within after this time, also if the host is
	// stopped or starved; 0 is never.
	Timer time.Duration
	// Movable: the timer will be moved often, as for calls that follow one another. Without
	// a Lease it then takes the host one more descriptor, and does not wake the launcher.
	Movable bool
	// Waits: the sandbox is made for a program that comes later: Process.Begin starts it. Path,
	// Args, Env, Dir and Timer are then not read. The plan must confine.
	Waits bool
	// Lease, if not nil, ends the tree from within when it is over, as Timer does.
	Lease *Lease
	// KillFile opens cgroup.kill of the call's group. It is called where the
	// plan has no PID namespace.
	KillFile func() (*os.File, error)
	Into     Into
}

// SetupError is the launcher's or zygote's own report that a tool could not be
// started. It is never the tool's doing.
type SetupError struct {
	// Step is what was about to be done.
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

// Executing says whether the step was that of executing the tool's program.
func (e *SetupError) Executing() bool { return e.Step == wire.StepExecute }

// TooFewFiles says whether it was the call's own limit of open files that left the sandbox
// none: the launcher opens those of Landlock below it.
func (e *SetupError) TooFewFiles() bool {
	return e.Step == wire.StepLandlock && errors.Is(e.Err, unix.EMFILE)
}

// ErrDiedAtBirth: the launcher vanished without a word, as it does when its
// group was killed before it could begin.
var ErrDiedAtBirth = errors.New("the launcher died before it could report")

// ErrUncertain: the start was given up in its middle. What was born ends at
// once, but the tool may have begun.
var ErrUncertain = errors.New("the start was given up before it was complete; the tool may have begun")

// Start starts a launcher that starts the tool, and returns once it is born:
// Process.Started tells when the tool runs. ctx bounds only that. An error
// means that nothing runs, or that what may still be born dies at once.
//
// Where the zygote is at fault (it has died, hangs, or has no descriptors left)
// and nothing was born for certain, the start is tried once more, by another one.
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
