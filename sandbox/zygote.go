package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/seqpacket"
	"github.com/toolhost/toolhost/internal/text"
	"github.com/toolhost/toolhost/sandbox/internal/wire"
)

// zygote is the small process that forks launchers (sandbox/launcher). A host
// that forked them itself would pay for its own size each time, since a child
// in a new user namespace can't be vforked.
type zygote struct {
	conn  *net.UnixConn
	child *os.Process
	gone  chan struct{} // closed when it has ended
	pulse pulse

	turn chan struct{} // one request at a time on conn
	uses int           // its births and processes, guarded by the host's mu
}

// users is whom a zygote can make launchers of.
type users struct {
	ids    idRange
	ranged bool
	// noRange says why there are no others but the caller.
	noRange error
	// noNamespace says why there are no user namespaces.
	noNamespace error
}

// lost is an error where a host has lost its users for calls. What is planned needs them,
// and what has taken them, such as a lack of memory, may pass.
func (u users) lost(now users) error {
	if !u.ranged || now.ranged {
		return nil
	}
	return fmt.Errorf("%w, and another one can make no users for calls: %w", errZygoteGone, cmp.Or(now.noRange, now.noNamespace))
}

// startZygote starts a zygote with as many users as can be had: as root any,
// otherwise the caller's subordinate ones, or the caller alone.
func startZygote() (*zygote, users, error) {
	if os.Geteuid() == 0 {
		z, err := newZygote(nil, []string{wire.ModeZygote})
		return z, privilegedUsers(), err
	}
	ids, noRange := subordinate("/etc/subuid", "/etc/subgid")
	if noRange == nil {
		z, err := mappedZygote(&syscall.SysProcAttr{}, func(pid int) error { return mapRange(pid, ids) })
		if err == nil {
			return z, users{ids: ids, ranged: true}, nil
		}
		noRange = err
	}
	z, err := mappedZygote(asItself(), func(int) error { return nil })
	if err == nil {
		return z, users{noRange: noRange}, nil
	}
	z, plainErr := newZygote(nil, []string{wire.ModeZygote})
	return z, users{noNamespace: err, noRange: noRange}, plainErr
}

// mappedZygote starts a zygote in a user namespace, maps users into it and
// lets it go on.
func mappedZygote(attr *syscall.SysProcAttr, mapUsers func(pid int) error) (*zygote, error) {
	attr.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS
	z, err := newZygote(attr, []string{wire.ModeZygote, wire.AwaitMap})
	if err != nil {
		return nil, err
	}
	if err = mapUsers(z.child.Pid); err == nil {
		_, err = z.conn.Write([]byte{1})
	}
	if err != nil {
		z.close()
		return nil, err
	}
	return z, nil
}

func privilegedUsers() users {
	uidMap, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return users{noRange: err}
	}
	ids, err := rootRange(string(uidMap))
	return users{ids: ids, ranged: err == nil, noRange: err}
}

func newZygote(attr *syscall.SysProcAttr, args []string) (*zygote, error) {
	image, err := sealedLauncher()
	if err != nil {
		return nil, err
	}
	conn, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	beat, itsBeat, err := socketPair()
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	defer itsBeat.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, errors.Join(err, conn.Close(), beat.Close())
	}
	defer null.Close()
	if attr == nil {
		attr = &syscall.SysProcAttr{}
	}
	attr.Setsid = true // a terminal's signals are not for it
	child, err := os.StartProcess(selfPath(image), append([]string{"toolhost-zygote"}, args...), &os.ProcAttr{
		Dir: "/", Env: []string{}, Files: []*os.File{null, null, null, theirs, image, itsBeat}, Sys: attr,
	})
	if err != nil {
		return nil, errors.Join(explainZygote(err), conn.Close(), beat.Close())
	}
	z := &zygote{conn: conn, child: child, gone: make(chan struct{}), turn: make(chan struct{}, 1), pulse: newPulse(beat)}
	go func() {
		defer close(z.gone)
		_, _ = child.Wait()
	}()
	go z.watch()
	return z, nil
}

func explainZygote(err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("cannot make a user namespace: %w", text.Cause(err))
	case errors.Is(err, unix.ENOSPC):
		return fmt.Errorf("cannot make a user namespace: sysctl user.max_user_namespaces is reached: %w", text.Cause(err))
	}
	return fmt.Errorf("cannot start the zygote: %w", text.Cause(err))
}

// send asks for a birth.
func (z *zygote) send(ctx context.Context, b wire.Birth, files []*os.File) error {
	if len(files) > wire.MaxBirthFiles {
		return fmt.Errorf("a call has %d files, paths and cgroups, at most %d are possible: grant folders instead of what is in them", len(files), wire.MaxBirthFiles)
	}
	message := append([]byte{wire.RequestBirth}, b.Encode()...)
	if len(message) > wire.MaxBirthBytes {
		return fmt.Errorf("the granted paths have %d bytes, at most %d are possible: grant folders instead of what is in them", len(message), wire.MaxBirthBytes)
	}
	return z.request(ctx, message, files)
}

var errZygoteGone = errors.New("the process that starts tools has died")

// request sends one message with files.
func (z *zygote) request(ctx context.Context, message []byte, files []*os.File) error {
	fds := make([]int, len(files))
	for i, file := range files {
		fds[i] = int(file.Fd())
	}
	select {
	case z.turn <- struct{}{}:
		defer func() { <-z.turn }()
	case <-z.pulse.lost:
		return fmt.Errorf("cannot ask the zygote: %w", z.pulse.err)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer z.askIfSlow()()
	expired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = z.conn.SetWriteDeadline(time.Unix(1, 0))
		close(expired)
	})
	_, _, err := z.conn.WriteMsgUnix(message, unix.UnixRights(fds...), nil)
	if !stop() {
		<-expired
		_ = z.conn.SetWriteDeadline(time.Time{})
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, unix.EPIPE), errors.Is(err, unix.ECONNRESET), errors.Is(err, net.ErrClosed):
		return fmt.Errorf("%w: %w", errZygoteGone, err)
	}
	return fmt.Errorf("cannot ask the zygote: %w", err)
}

// zygoteEnd bounds the wait for a zygote that the kernel holds, say in a file
// system that does not answer.
const zygoteEnd = 2 * time.Second

// close ends the zygote; launchers live on. It may be called again.
func (z *zygote) close() {
	_ = z.child.Kill() // before it can take the host for dead
	_ = z.conn.Close()
	_ = z.pulse.conn.Close()
	select {
	case <-z.gone:
		<-z.pulse.lost
	case <-time.After(zygoteEnd):
	}
}

// worn says whether the zygote has shown that it has no descriptors left.
func (z *zygote) worn() (worn bool) {
	raw, err := z.conn.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, _ := unix.Poll(fds, 0)
		worn = n > 0
	})
	return worn
}

// socketPair makes a pair whose one end stays here.
func socketPair() (*net.UnixConn, *os.File, error) {
	ours, theirs, err := seqpacket.Pair("control", 0)
	if err == nil {
		return ours, theirs, nil
	}
	if remedy := Remedy(err); remedy != "" {
		return nil, nil, fmt.Errorf("cannot make a socket pair: %w; %s", err, remedy)
	}
	return nil, nil, fmt.Errorf("cannot make a socket pair: %w", err)
}

// selfPath names an open file in a way that a child can still execute: the
// descriptor is resolved before exec closes it.
func selfPath(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }
