package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sandbox/internal/wire"
)

// zygote is the small process that forks launchers (sandbox/launcher). A host
// that forked them itself would pay for its own size each time, since a child
// in a new user namespace can't be vforked.
type zygote struct {
	conn  *net.UnixConn
	child *os.Process
	gone  chan struct{}

	mu sync.Mutex // one request at a time on conn
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

// startZygote starts a zygote with as many users as can be had: as root any,
// otherwise the caller's subordinate ones, or the caller alone.
func startZygote() (*zygote, users, error) {
	if os.Geteuid() == 0 {
		z, err := newZygote(nil, []string{wire.ModeZygote})
		return z, privilegedUsers(), err
	}
	z, err := newZygote(&syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS}, []string{wire.ModeZygote, wire.AwaitMap})
	if err != nil {
		plain, plainErr := newZygote(nil, []string{wire.ModeZygote})
		return plain, users{noNamespace: err, noRange: err}, plainErr
	}
	u, err := z.mapUsers()
	if err != nil {
		z.close()
		return nil, u, err
	}
	return z, u, nil
}

func privilegedUsers() users {
	uidMap, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return users{noRange: err}
	}
	ids, err := rootRange(string(uidMap))
	return users{ids: ids, ranged: err == nil, noRange: err}
}

// mapUsers gives a waiting zygote its users and lets it go on.
func (z *zygote) mapUsers() (users, error) {
	var u users
	u.ids, u.noRange = subordinate("/etc/subuid", "/etc/subgid")
	if u.noRange == nil {
		u.noRange = mapRange(z.child.Pid, u.ids)
	}
	u.ranged = u.noRange == nil
	if !u.ranged {
		if err := mapSelf(z.child.Pid); err != nil {
			return u, err
		}
	}
	if _, err := z.conn.Write([]byte{1}); err != nil {
		return u, fmt.Errorf("cannot start the zygote: %w", err)
	}
	return u, nil
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
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	defer null.Close()
	if attr == nil {
		attr = &syscall.SysProcAttr{}
	}
	attr.Setsid = true // a terminal's signals are not for it
	child, err := os.StartProcess(selfPath(image), append([]string{"toolhost-zygote"}, args...), &os.ProcAttr{
		Dir: "/", Env: []string{"GOMAXPROCS=2"}, Files: []*os.File{null, null, null, theirs, image}, Sys: attr,
	})
	if err != nil {
		return nil, errors.Join(explainZygote(err), conn.Close())
	}
	z := &zygote{conn: conn, child: child, gone: make(chan struct{})}
	go func() {
		defer close(z.gone)
		_, _ = child.Wait()
	}()
	return z, nil
}

func explainZygote(err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("cannot make a user namespace: %w", reason(err))
	case errors.Is(err, unix.ENOSPC):
		return fmt.Errorf("cannot make a user namespace: sysctl user.max_user_namespaces is reached: %w", reason(err))
	}
	return fmt.Errorf("cannot start the zygote: %w", reason(err))
}

// send asks for a birth.
func (z *zygote) send(b wire.Birth, files []*os.File) error {
	if len(files)+len(b.Stage) > wire.MaxBirthFiles {
		return fmt.Errorf("a call has %d files, paths and cgroups, at most %d are possible: grant folders instead of what is in them", len(files)+len(b.Stage), wire.MaxBirthFiles)
	}
	message := append([]byte{wire.RequestBirth}, b.Encode()...)
	if len(message) > wire.MaxBirthBytes {
		return fmt.Errorf("the granted paths have %d bytes, at most %d are possible: grant folders instead of what is in them", len(message), wire.MaxBirthBytes)
	}
	return z.request(message, files)
}

var errZygoteGone = errors.New("cannot ask the zygote")

// request sends one message with files.
func (z *zygote) request(message []byte, files []*os.File) error {
	fds := make([]int, len(files))
	for i, file := range files {
		fds[i] = int(file.Fd())
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	if _, _, err := z.conn.WriteMsgUnix(message, unix.UnixRights(fds...), nil); err != nil {
		return fmt.Errorf("%w: %w", errZygoteGone, err)
	}
	return nil
}

func (z *zygote) isGone() bool {
	select {
	case <-z.gone:
		return true
	default:
		return false
	}
}

// zygoteEnd bounds the wait for a zygote that the kernel holds, say in a file
// system that does not answer.
const zygoteEnd = 2 * time.Second

// close ends the zygote; launchers live on.
func (z *zygote) close() {
	_ = z.conn.Close()
	_ = z.child.Kill()
	select {
	case <-z.gone:
	case <-time.After(zygoteEnd):
	}
}

// socketPair makes a pair whose one end stays here.
func socketPair() (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a socket pair: %w", err)
	}
	ours := os.NewFile(uintptr(fds[0]), "control")
	theirs := os.NewFile(uintptr(fds[1]), "control")
	defer ours.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("cannot use a socket pair: %w", err), theirs.Close())
	}
	return conn.(*net.UnixConn), theirs, nil
}

// selfPath names an open file in a way that a child can still execute: the
// descriptor is resolved before exec closes it.
func selfPath(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }

// reason is a path error without its path, which the caller names.
func reason(err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err
	}
	return err
}
