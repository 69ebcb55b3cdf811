package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Isolation is what this host lets a launcher have, found by starting one.
type Isolation struct {
	// PIDNamespace: the launcher is PID 1, and its end is the tree's end.
	PIDNamespace bool
	// UserNamespace: namespaces were only to be had through one of those.
	UserNamespace bool
	// Proc: a /proc of the call's own could be mounted.
	Proc     bool
	degraded []Degradation
}

// probeTimeout bounds one trial start; it is generous, for a starved machine.
const probeTimeout = 10 * time.Second

// Probe finds the strongest isolation that works here by really starting
// launchers, strongest first, where calls are to be started (into, as in
// Start). An error that Is ErrDiedAtBirth says that nothing can be born there.
func Probe(into func(*syscall.SysProcAttr, func() error) error) (Isolation, error) {
	var tried []error
	for _, candidate := range candidates(os.Geteuid() == 0) {
		err := try(candidate, into)
		if err == nil {
			return candidate, nil
		}
		tried = append(tried, err)
	}
	return Isolation{}, fmt.Errorf("cannot start the launcher: %w", errors.Join(tried...))
}

func candidates(root bool) []Isolation {
	noProc := Degradation{"procfs", "/proc cannot be mounted anew, host processes stay visible in it", "do not mask /proc of the container that toolhost runs in"}
	noPID := Degradation{"pidns", "no PID namespace to be had; the cgroup alone holds the tree", "run as root, or set sysctl user.max_user_namespaces above 0 and allow unprivileged user namespaces"}
	user := !root
	list := []Isolation{
		{PIDNamespace: true, UserNamespace: user, Proc: true},
		{PIDNamespace: true, UserNamespace: user, degraded: []Degradation{noProc}},
	}
	return append(list, Isolation{degraded: []Degradation{noPID}})
}

// try runs a launcher with the executable that is always there: itself, which
// started by hand prints a line and exits.
func try(isolation Isolation, into func(*syscall.SysProcAttr, func() error) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	p, err := Start(Spec{
		Isolation: isolation, Path: "/proc/self/exe", Args: []string{"probe"}, Dir: "/",
		Stdio: [3]*os.File{null, null, null}, Timer: probeTimeout,
	}, into)
	if err != nil {
		return err
	}
	defer p.Release()
	defer p.Kill()
	return p.Started(ctx)
}

// Receipt is the part of a call's receipt that the isolation accounts for.
func (i Isolation) Receipt() Receipt {
	r := Receipt{Tier: TierNone, Enforced: []string{}, Degraded: []Degradation{}}
	for _, f := range []struct {
		name string
		on   bool
	}{{"pidns", i.PIDNamespace}, {"mountns", i.PIDNamespace}, {"userns", i.UserNamespace}, {"procfs", i.Proc}, {"subreaper", !i.PIDNamespace}} {
		if f.on {
			r.Enforced = append(r.Enforced, f.name)
		}
	}
	r.Enforced = append(r.Enforced, "lifeline", "timer", "session")
	r.Degraded = append(r.Degraded, i.degraded...)
	return r
}

// attributes are what clone(2) needs for this isolation.
func (i Isolation) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if i.PIDNamespace {
		attr.Cloneflags = unix.CLONE_NEWPID | unix.CLONE_NEWNS
	}
	if i.UserNamespace {
		uid, gid := os.Geteuid(), os.Getegid()
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		// Capabilities vanish at exec for a uid other than 0 unless ambient;
		// the launcher drops them before the tool starts.
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
	}
	return attr
}
