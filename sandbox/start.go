package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sandbox/internal/wire"
)

// LauncherTasks bounds the tasks that the launcher adds to a call's group: the
// group's pids limit is the tool's own plus this.
const LauncherTasks = wire.Threads

// Spec is one start. It is read during Start only.
type Spec struct {
	// Isolation as found by Probe.
	Isolation Isolation
	// Path is the executable, Args its whole argument vector (Args[0] too),
	// Env its whole environment, Dir its working directory.
	Path string
	Args []string
	Env  []string
	Dir  string
	// Stdio are the tool's descriptors 0 to 2, Extra those from 3 on. Start
	// does not close them.
	Stdio [3]*os.File
	Extra []*os.File
	// SocketDir is an existing folder in which the tool makes its socket; the
	// launcher covers it with a tmpfs where it has a mount namespace. Empty:
	// none.
	SocketDir string
	// Timer ends the tree from within after this time, also if the host is
	// stopped or starved; 0 is never.
	Timer time.Duration
	// KillFile is an open cgroup.kill of the call's group. It is needed where
	// Isolation has no PID namespace and ignored elsewhere.
	KillFile *os.File
}

// Start starts a launcher that starts the tool. into runs the fork so that the
// child is born where it belongs (cgroup.Group.Start); nil starts it in the
// caller's own groups. An error means that nothing runs.
func Start(spec Spec, into func(*syscall.SysProcAttr, func() error) error) (*Process, error) {
	image, err := sealedLauncher()
	if err != nil {
		return nil, err
	}
	control, theirs, err := controlPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	attr := spec.Isolation.attributes()
	var child *os.Process
	start := func() (err error) {
		child, err = os.StartProcess(selfPath(image), spec.argv(), &os.ProcAttr{
			Dir: "/", Env: spec.Env, Files: spec.files(theirs), Sys: attr,
		})
		return err
	}
	if into == nil {
		err = start()
	} else {
		err = into(attr, start)
	}
	if err != nil {
		if child != nil { // born, but not where it belongs
			_ = child.Kill()
			_, _ = child.Wait()
		}
		return nil, errors.Join(explainClone(spec, err), control.Close())
	}
	return newProcess(child, control), nil
}

// selfPath names an open file in a way that a child can still execute: the
// descriptor is resolved before exec closes it.
func selfPath(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }

func (s Spec) argv() []string {
	options := wire.Options{
		Namespaced: s.Isolation.PIDNamespace, Proc: s.Isolation.Proc, Kill: s.needsKillFile(),
		Extra: len(s.Extra), TimerNS: int64(s.Timer), SocketDir: s.SocketDir, Dir: s.Dir, Path: s.Path,
	}
	return append([]string{"toolhost-launcher", options.Encode()}, s.Args...)
}

func (s Spec) needsKillFile() bool { return !s.Isolation.PIDNamespace && s.KillFile != nil }

func (s Spec) files(control *os.File) []*os.File {
	files := append(s.Stdio[:len(s.Stdio):len(s.Stdio)], control)
	if s.needsKillFile() {
		files = append(files, s.KillFile)
	}
	return append(files, s.Extra...)
}

// controlPair makes the socket pair whose host end is the tree's lifeline.
func controlPair() (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a control socket: %w", err)
	}
	ours := os.NewFile(uintptr(fds[0]), "control")
	theirs := os.NewFile(uintptr(fds[1]), "control")
	defer ours.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("cannot use the control socket: %w", err), theirs.Close())
	}
	return conn.(*net.UnixConn), theirs, nil
}

func explainClone(spec Spec, err error) error {
	switch {
	case errors.Is(err, unix.ENOSPC):
		return fmt.Errorf("cannot start the launcher: %w; raise sysctl user.max_pid_namespaces and user.max_user_namespaces", err)
	case errors.Is(err, unix.EPERM) && spec.Isolation.UserNamespace:
		return fmt.Errorf("cannot start the launcher in a user namespace: %w; allow unprivileged user namespaces or run as root", err)
	}
	return fmt.Errorf("cannot start the launcher: %w", err)
}
