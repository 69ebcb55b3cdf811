package main

import (
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sandbox/internal/wire"
)

// requestFD is the socket from the host; its end of file is the zygote's end.
const requestFD = 3

// The launcher's sealed memfd comes as descriptor 4 and moves out of the way:
// a child resolves the path when its own descriptors are already in place.
const (
	imageFD   = 4
	imageMin  = 4000 // or a little below the limit of open files
	firstPath = "/proc/self/fd/4"
)

var imagePath string

// zygote gives birth to launchers until its host is gone. It is small and has
// no heap to speak of, so its forks cost the same however large the host is.
//
// Where it was born in a user namespace it waits for the host to map users
// into it and then executes itself again, which makes it that namespace's root.
func zygote() {
	if len(os.Args) > 2 && os.Args[2] == wire.AwaitMap {
		awaitMap()
	}
	// Not before: only of a dumpable process may the host write the maps.
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	image, err := unix.FcntlInt(imageFD, unix.F_DUPFD_CLOEXEC, highFD())
	if err != nil {
		os.Exit(exitSetup)
	}
	imagePath = "/proc/self/fd/" + strconv.Itoa(image)
	_ = unix.CloseRange(requestFD, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
	go reapLaunchers()
	go answerPings()
	buf, oob := make([]byte, wire.MaxBirthBytes), make([]byte, unix.CmsgSpace(4*wire.MaxBirthFiles))
	for {
		awaitRequest()
		n, oobn, flags, _, err := unix.Recvmsg(requestFD, buf, oob, unix.MSG_CMSG_CLOEXEC)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			endAll()
			os.Exit(0)
		}
		files := received(oob[:oobn])
		if flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
			refuseCut(files)
			continue
		}
		handle(buf[:n], files)
	}
}

// awaitRequest returns when a request is there. If not even one descriptor is
// left it says so first: the answer's would be closed before it could be used.
func awaitRequest() {
	fds := []unix.PollFd{{Fd: requestFD, Events: unix.POLLIN}}
	for {
		if n, err := unix.Poll(fds, -1); n > 0 || err != unix.EINTR {
			break
		}
	}
	fd, err := unix.FcntlInt(requestFD, unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		tellWorn()
		return
	}
	unix.Close(fd)
}

// refuseCut answers a request that did not come whole: there were no
// descriptors left for its files.
func refuseCut(files []int) {
	defer closeAll(files)
	tellWorn()
	if len(files) > 0 {
		sendFailure(files[0], wire.StepReceive, unix.EMFILE)
	}
}

// tellWorn shows the host that this process has no descriptors left: another
// one is to give birth from now on, while this one keeps its launchers.
func tellWorn() { _ = unix.Shutdown(requestFD, unix.SHUT_WR) }

// refuse tells the host why a request has failed.
func refuse(answer int, step string, err error) {
	if err == unix.EMFILE || err == unix.ENFILE {
		tellWorn()
	}
	sendFailure(answer, step, err)
}

// highFD is out of the way of all that births bring: several at once, each
// with a few dozen files.
func highFD() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 1000
	}
	return int(min(limit.Cur-8, imageMin))
}

// births bounds those that are under way.
var births = make(chan struct{}, 24)

func handle(message []byte, files []int) {
	switch message[0] {
	case wire.RequestConnect:
		go connect(string(message[1:]), files)
	case wire.RequestBirth:
		if request, err := wire.DecodeBirth(message[1:]); err == nil {
			births <- struct{}{}
			go func() {
				defer func() { <-births }()
				bear(request, files)
			}()
			return
		}
		closeAll(files)
	default:
		closeAll(files)
	}
}

// awaitMap returns by executing this program anew.
func awaitMap() {
	var go1 [1]byte
	if n, err := unix.Read(requestFD, go1[:]); err != nil || n != 1 {
		os.Exit(0)
	}
	_ = unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, "")
	_ = syscall.Exec(firstPath, []string{os.Args[0], wire.ModeZygote}, os.Environ())
	os.Exit(exitSetup)
}

// forked tells reapLaunchers that there is a child to wait for.
var forked = make(chan struct{}, 1)

// reapLaunchers takes the statuses of what has ended; the host watches by
// pidfd.
func reapLaunchers() {
	for range forked {
		for {
			err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOWAIT|unix.WALL, nil)
			if err != nil && err != unix.EINTR {
				break // no children left
			}
			reapDead()
		}
	}
}

func tellReaper() {
	select {
	case forked <- struct{}{}:
	default:
	}
}

func received(oob []byte) (files []int) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for i := range messages {
		if fds, err := unix.ParseUnixRights(&messages[i]); err == nil {
			files = append(files, fds...)
		}
	}
	return files
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// birth is one request with its files told apart.
type birth struct {
	wire.Birth
	cgroup       int
	enter, leave []int
	sources      []int // of Stage
	files        []int // the launcher's, from 0
}

func sortFiles(request wire.Birth, fds []int) (birth, bool) {
	b := birth{Birth: request, cgroup: -1}
	fds = fds[min(1, len(fds)):] // the first is for the answer
	if request.Cgroup && len(fds) > 0 {
		b.cgroup, fds = fds[0], fds[1:]
	}
	n, m, s := int(request.Enter), int(request.Leave), len(request.Stage)
	if len(fds) < n+m+s+wire.SpecFD+1 {
		return b, false
	}
	b.enter, b.leave, b.sources, b.files = fds[:n], fds[n:n+m], fds[n+m:n+m+s], fds[n+m+s:]
	return b, true
}

// bear forks one launcher and tells the host on the call's control socket.
func bear(request wire.Birth, fds []int) {
	defer func() { closeAll(fds) }()
	b, ok := sortFiles(request, fds)
	if !ok {
		return
	}
	control := fds[0]
	trees, step, err := b.stage()
	fds = append(fds, trees...)
	b.files = append(b.files, trees...)
	if err == nil {
		step, err = wire.StepClone, b.fork(control)
	}
	if err != nil {
		refuse(control, step, err)
	}
}

// fork clones the launcher into its groups and sends its pidfd.
func (b *birth) fork(control int) error {
	pidfd := -1
	var pid int
	err := b.inGroups(func() (err error) {
		pid, err = forkExec(imagePath, []string{"toolhost-launcher", wire.ModeLaunch}, &syscall.ProcAttr{
			Dir: "/", Env: launcherEnv, Files: b.descriptors(), Sys: b.attributes(&pidfd),
		})
		return err
	})
	if pidfd >= 0 {
		watchOver(pid, pidfd, b)
		defer unix.Close(pidfd)
	}
	tellReaper()
	if pidfd < 0 {
		return err
	}
	if err == nil { // else it was born, but the way back failed
		err = unix.Sendmsg(control, wire.AppendNumber(nil, wire.KindBorn, uint64(pid)), unix.UnixRights(pidfd), nil, unix.MSG_NOSIGNAL)
	}
	if err != nil { // nobody else can end it
		_ = unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0)
	}
	return err
}

// launcherEnv is the launcher's own, not its tool's.
var launcherEnv = []string{"GOMAXPROCS=" + strconv.Itoa(processors)}

// inGroups runs f on a thread that is in the cgroup v1 groups meanwhile, so
// that what f forks is born there: one write for each hierarchy and no wait for
// a grace period, as moving a process costs.
func (b *birth) inGroups(f func() error) (err error) {
	workers := plainWorkers
	if b.DropGroups {
		workers = grouplessWorkers
	}
	w := <-workers
	defer func() { workers <- w }()
	w.run(func() (fit bool) {
		err = enter(b.enter)
		if err == nil {
			err = f()
		}
		back := enter(b.leave)
		if err == nil {
			err = back
		}
		// Where the way back is out of sight, only the thread's end leads out.
		return back == nil && len(b.enter) == len(b.leave)
	})
	return err
}

func enter(tasks []int) error {
	for _, fd := range tasks {
		if _, err := unix.Write(fd, []byte("0")); err != nil {
			return err
		}
	}
	return nil
}

func (b *birth) descriptors() []uintptr {
	files := make([]uintptr, len(b.files))
	for i, fd := range b.files {
		files[i] = uintptr(fd)
	}
	return files
}

func (b *birth) attributes(pidfd *int) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true, Cloneflags: uintptr(b.Flags), PidFD: pidfd}
	if b.cgroup >= 0 {
		attr.UseCgroupFD, attr.CgroupFD = true, b.cgroup
	}
	if b.User {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: int(b.InsideUID), HostID: int(b.UID), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: int(b.InsideGID), HostID: int(b.GID), Size: 1}}
		attr.Credential = &syscall.Credential{Uid: uint32(b.InsideUID), Gid: uint32(b.InsideGID), NoSetGroups: true}
		// Capabilities vanish at exec for a uid other than 0 unless ambient;
		// the launcher drops them before the tool starts.
		attr.AmbientCaps = launcherCapabilities
	}
	return attr
}

// launcherCapabilities are what building a sandbox takes, in its own user
// namespace.
var launcherCapabilities = []uintptr{
	unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP, unix.CAP_NET_ADMIN, unix.CAP_SYS_RESOURCE,
}
