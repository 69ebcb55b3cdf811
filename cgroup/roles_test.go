package cgroup

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

var roles = map[string]func(args []string){
	"idle":            func([]string) { say("ready"); idle() },
	"exit":            func([]string) {},
	"polite":          polite,
	"stubborn":        stubborn,
	"tree":            tree,
	"treadmill":       treadmill,
	"bomb":            bomb,
	"spin":            spin,
	"allocate":        allocate,
	"allocate-in-kid": allocateInKid,
	"owner":           owner,
	"doomed":          doomed,
	"open":            open,
	"ask":             ask,
}

func play(role string, args []string) {
	f, ok := roles[role]
	if !ok {
		fmt.Fprintf(os.Stderr, "bug: no role %q\n", role)
		os.Exit(2)
	}
	f(args)
}

func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func idle() {
	for {
		time.Sleep(time.Hour)
	}
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

// polite leaves at SIGTERM and says so.
func polite([]string) {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	say("ready")
	<-term
	say("terminated")
}

// stubborn ignores SIGTERM.
func stubborn([]string) {
	signal.Ignore(syscall.SIGTERM)
	say("ready")
	idle()
}

// rawFork forks without exec. The child may only make raw system calls: it has
// one thread of a runtime that thinks it has more.
//
//go:nosplit
func rawFork() (pid uintptr, errno syscall.Errno) {
	pid, _, errno = syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	return pid, errno
}

//go:nosplit
func rawPause() {
	for {
		syscall.RawSyscall6(syscall.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
	}
}

// tree makes children in mixed sessions and process groups, a third of them
// stopped.
func tree(args []string) {
	for i := range number(args[0]) {
		pid, errno := rawFork()
		if errno != 0 {
			panic(errno)
		}
		if pid == 0 {
			switch i % 4 {
			case 0:
				syscall.RawSyscall(syscall.SYS_SETSID, 0, 0, 0)
			case 1:
				syscall.RawSyscall(syscall.SYS_SETPGID, 0, 0, 0)
			}
			if i%3 == 0 {
				me, _, _ := syscall.RawSyscall(syscall.SYS_GETPID, 0, 0, 0)
				syscall.RawSyscall(syscall.SYS_KILL, me, uintptr(syscall.SIGSTOP), 0)
			}
			rawPause()
		}
	}
	say("ready")
	idle()
}

// treadmill is a crowd in which everyone forks and dies, over and over.
func treadmill(args []string) {
	for started := 0; started < number(args[0]); {
		pid, errno := rawFork()
		if pid == 0 && errno == 0 {
			rawTreadmill()
		}
		if errno == 0 { // else the crowd has filled pids.max for a moment
			started++
		}
	}
	say("ready")
	idle()
}

//go:nosplit
func rawTreadmill() {
	for {
		pid, errno := rawFork()
		if errno == 0 && pid != 0 {
			syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
}

// bomb forks until it is refused, and tells how many it got.
func bomb([]string) {
	n := 0
	for ; n < 1000; n++ { // a bound of its own, should there be no limit
		pid, errno := rawFork()
		if errno != 0 {
			say("refused after %d: %v", n, errno)
			idle()
		}
		if pid == 0 {
			rawPause()
		}
	}
	say("not refused after %d", n)
	idle()
}

//go:nosplit
func rawSpin() {
	for n := uint64(1); n != 0; n++ {
	}
}

// spin makes children that burn CPU time.
func spin(args []string) {
	for range number(args[0]) {
		if pid, _ := rawFork(); pid == 0 {
			rawSpin()
		}
	}
	say("ready")
	idle()
}

// allocate takes MiB after MiB of memory up to its argument.
func allocate(args []string) {
	say("ready")
	for range number(args[0]) {
		b, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			panic(err)
		}
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
	}
	say("allocated")
	idle()
}

// allocateInKid survives its kid on v1, where the kernel kills only that.
func allocateInKid(args []string) {
	say("ready")
	kid := exec.Command("/proc/self/exe", args...)
	kid.Env = append(os.Environ(), envRole+"=allocate")
	err := kid.Run()
	say("kid: %v", err)
	idle()
}

// owner opens a Root, starts an idle child in a group and waits to be killed.
func owner(args []string) {
	r, err := Open(context.Background(), Options{ignoreUnified: len(args) > 0 && args[0] == ModeV1.String()})
	if err != nil {
		panic(err)
	}
	g, err := r.NewGroup("orphan", Limits{Pids: 20})
	if err != nil {
		panic(err)
	}
	cmd := roleCommand("idle")
	if err := g.Start(cmd.SysProcAttr, cmd.Start); err != nil {
		panic(err)
	}
	say("%d", cmd.Process.Pid)
	say("%s", r.name)
	idle()
}
