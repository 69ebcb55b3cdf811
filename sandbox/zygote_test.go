package sandbox

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// zygotes lists those that this process has.
func zygotes(t *testing.T) []int { return children(t, os.Getpid(), "toolhost-zygote") }

// echoes checks that a call which was begun before still works.
func (c *call) echoes() {
	c.t.Helper()
	_, err := c.stdin.WriteString("hello\n")
	must(c.t, err)
	if got := c.line(); got != "hello\n" {
		c.t.Errorf("echo %q", got)
	}
}

// makesCalls checks that a call can be made, and leaves none of it.
func (w *world) makesCalls(p *Plan) {
	w.t.Helper()
	c := w.run(p, "exit7")
	if status := c.status(); status.ExitStatus() != 7 {
		w.t.Errorf("status %#x", status)
	}
	c.Kill()
	c.Release()
}

// A zygote without descriptors is replaced, however few it lacks, and the call
// that found it out does not fail. What the old one gave birth to lives on,
// with it.
func TestAWornZygoteIsReplaced(t *testing.T) {
	w := enter(t)
	p := w.plan(Policy{}, Task{})
	for spare := range 20 {
		w.makesCalls(p)
		before := zygotePID(t)
		idle := descriptors(t, before)
		c := w.run(p, "echo")
		c.line()
		const kept = 1 // the call's mount namespace
		wait.Until(t, "the zygote has closed the birth's other files", func() bool { return descriptors(t, before) <= idle+kept })
		limit := uint64(lowDescriptors(t, before) + spare)
		var was unix.Rlimit
		must(t, unix.Prlimit(before, unix.RLIMIT_NOFILE, nil, &was))
		must(t, unix.Prlimit(before, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: was.Max}, nil))
		w.makesCalls(p)
		now := zygotes(t)
		if replaced := len(now) == 2; !replaced && spare < 10 {
			t.Errorf("%d spare descriptors: zygotes %v", spare, now)
		}
		c.echoes()
		if !slices.Contains(now, before) {
			t.Errorf("%d spare descriptors: the zygote of a living call has ended", spare)
		}
		c.Kill()
		c.Release()
		if len(now) == 2 {
			wait.Until(t, "the old zygote ends with its last call", func() bool { return !slices.Contains(zygotes(t), before) })
		} else {
			must(t, w.Restart())
		}
	}
}

// Worn zygotes are kept for what lives of them, but not any number.
func TestWornZygotesAreBounded(t *testing.T) {
	w := enter(t)
	p := w.plan(Policy{}, Task{})
	for range 2 * maxOld {
		w.run(p, "sleep")
		pid := w.z.child.Pid
		must(t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: 3}, nil))
	}
	w.makesCalls(p)
	if n := len(zygotes(t)); n > maxOld+1 {
		t.Errorf("%d zygotes", n)
	}
}

// A zygote that answers nothing is killed before another one is started, and
// whoever waits for it has his call all the same.
func TestAStoppedZygoteIsReplaced(t *testing.T) {
	w := enter(t)
	p := w.plan(Policy{}, Task{})
	c := w.run(p, "echo")
	c.line()
	old := zygotePID(t)
	must(t, syscall.Kill(old, syscall.SIGSTOP))
	var all sync.WaitGroup
	for range 100 { // more than the socket takes
		all.Go(func() {
			stdin, _ := pipe(t)
			_, stdout := pipe(t)
			started, err := w.Start(wait.Context(t), w.spec(p, "exit7", nil, stdin, stdout))
			if err != nil {
				t.Error(err)
				return
			}
			if status := <-started.Exited(); status.ExitStatus() != 7 {
				t.Errorf("status %#x", status)
			}
			started.Kill()
			started.Release()
		})
	}
	all.Wait()
	if now := zygotes(t); len(now) != 1 || now[0] == old {
		t.Errorf("zygotes %v, the old one was %d", now, old)
	}
	c.echoes()
}

// A zygote that is slow, but runs, is left alone.
func TestABusyZygoteIsNotReplaced(t *testing.T) {
	w := enter(t)
	p := w.plan(Policy{}, Task{})
	old := zygotePID(t)
	must(t, syscall.Kill(old, syscall.SIGSTOP))
	w.z.pulse.ask()
	wait.Until(t, "it is asked", func() bool { return len(w.z.pulse.asked) == 0 })
	must(t, syscall.Kill(old, syscall.SIGCONT))
	w.makesCalls(p)
	for range 3 {
		w.z.pulse.ask()
		wait.Until(t, "it is asked", func() bool { return len(w.z.pulse.asked) == 0 })
	}
	if now := zygotePID(t); now != old {
		t.Errorf("the zygote is %d, was %d", now, old)
	}
}

// The zygote is ahead of its host's threads where it may be, and what it gives birth to
// is not.
func TestOnlyTheZygoteIsAhead(t *testing.T) {
	w := enter(t)
	c := w.run(w.plan(Policy{}, Task{}), "echo")
	c.line() // it runs
	// The system call gives 20 less the nice value (getpriority(2)).
	host, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	must(t, err)
	for pid, want := range map[int]int{zygotePID(t): min(host+10, 40), c.PID(): host} {
		switch got, err := unix.Getpriority(unix.PRIO_PROCESS, pid); {
		case err != nil:
			t.Error(err)
		case got != want && !(got == host && os.Geteuid() != 0):
			t.Errorf("process %d has %d, want %d; the host has %d", pid, got, want, host)
		}
	}
}

// The network of a call may be one that its zygote has made before: then it belongs to the
// zygote's user namespace. It is of that call alone.
func TestANetworkIsMadeAhead(t *testing.T) {
	w := enter(t)
	p := w.plan(Policy{}, Task{})
	users := inodeOf(t, fmt.Sprintf("/proc/%d/ns/user", zygotePID(t)))
	seen := map[string]bool{}
	for ahead := 0; ahead < 5 && !t.Failed(); {
		wait.Until(t, "a network is made ahead", func() bool { return networks(t, zygotePID(t)) > 1 || len(seen) < 2 })
		c := w.run(p, "echo")
		ns := fmt.Sprintf("/proc/%d/ns/net", c.PID())
		name, err := os.Readlink(ns)
		must(t, err)
		held, err := os.Open(ns) // or its number would be another's later
		must(t, err)
		defer held.Close()
		if seen[name] {
			t.Errorf("the call has %s, as one before", name)
		}
		seen[name] = true
		c.line()
		if ownerOf(t, ns) == users {
			ahead++ // a launcher that comes before it is handed over makes its own
		}
		c.echoes()
		c.Kill()
		c.Release()
	}
	wait.Until(t, "a network is made ahead", func() bool { return networks(t, zygotePID(t)) > 1 })
	w.wantDo(p, "loopback", "ok")
}

// lowDescriptors counts those that a limit can be near to: what a zygote keeps is far above.
func lowDescriptors(t *testing.T, pid int) (n int) {
	t.Helper()
	const kept = 320
	entries, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/fd")
	must(t, err)
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd < kept {
			n++
		}
	}
	return n
}

// ownerOf is the user namespace that another one belongs to.
func ownerOf(t *testing.T, path string) uint64 {
	t.Helper()
	file, err := os.Open(path)
	must(t, err)
	defer file.Close()
	fd, err := unix.IoctlRetInt(int(file.Fd()), unix.NS_GET_USERNS)
	must(t, err)
	defer unix.Close(fd)
	return inodeOf(t, "/proc/self/fd/"+strconv.Itoa(fd))
}

func inodeOf(t *testing.T, path string) uint64 {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Stat(path, &st))
	return st.Ino
}

// A process that holds a user namespace ends with a zygote that dies before it can end it.
func TestNothingOutlivesAZygote(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root has id-mapped grants")
	}
	w := enter(t)
	p := w.plan(Policy{Read: []string{t.TempDir()}}, Task{})
	stdin, _ := pipe(t)
	_, stdout := pipe(t)
	for killed := 0; killed < 20; {
		must(t, w.Restart()) // the new zygote has no namespace yet
		zygote, gone := zygotePID(t), w.z.gone
		var started sync.WaitGroup
		started.Go(func() {
			if process, err := w.Start(wait.Context(t), w.spec(p, "exit7", nil, stdin, stdout)); err == nil {
				_ = process.Kill()
				process.Release()
			}
		})
		holder := holderOf(zygote)
		must(t, syscall.Kill(zygote, syscall.SIGKILL))
		started.Wait()
		<-gone
		if holder == "" {
			continue
		}
		killed++
		wait.Until(t, "it is gone", func() bool { return !lives(holder) })
	}
}

// holderOf is the first child of the zygote that is in a user namespace of its own; empty if
// there was none while a start took its time.
func holderOf(zygote int) (pid string) {
	own, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/user", zygote))
	for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end); {
		list, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", zygote))
		for pid := range strings.FieldsSeq(string(list)) {
			if users, err := os.Readlink("/proc/" + pid + "/ns/user"); err == nil && users != own {
				return pid
			}
		}
	}
	return ""
}

// lives says whether a process is there and no zombie (proc_pid_stat(5)).
func lives(pid string) bool {
	raw, err := os.ReadFile("/proc/" + pid + "/stat")
	_, rest, _ := strings.Cut(string(raw), ") ")
	return err == nil && !strings.HasPrefix(rest, "Z")
}

// A host that is protected from the OOM killer has no tools that are.
func TestToolsAreNotProtectedFromTheOOMKiller(t *testing.T) {
	const file = "/proc/self/oom_score_adj"
	was, err := os.ReadFile(file)
	must(t, err)
	w := enter(t)
	for _, score := range []struct{ own, tools string }{{"300", "300"}, {"-500", "0"}} {
		if err := os.WriteFile(file, []byte(score.own), 0); err != nil {
			t.Skip("missing: CAP_SYS_RESOURCE (to lower oom_score_adj)")
		}
		defer os.WriteFile(file, was, 0)
		must(t, w.Restart())
		if got := w.run(w.plan(Policy{}, Task{}), "do", "read:"+file).output(); strings.TrimSpace(got) != score.tools {
			t.Errorf("of a host with %q a tool has %q, want %q", score.own, got, score.tools)
		}
	}
}
