package escape

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// lastGuess is the highest pid that is tried without having been seen.
	lastGuess = 64
	// maxTargets bounds the strangers that are attacked one by one.
	maxTargets = 4
)

// visible are the processes in /proc.
func visible() []int {
	entries, _ := os.ReadDir("/proc")
	var pids []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// parentOf reads a process's parent, 0 if it cannot be told.
func parentOf(pid int) int {
	parent, _ := strconv.Atoi(fields(fmt.Sprintf("/proc/%d/status", pid))["PPid"])
	return parent
}

// mine says whether a process, or the process of a thread, is this one or descends from it.
func mine(pid int) bool {
	if group, err := strconv.Atoi(fields(fmt.Sprintf("/proc/%d/status", pid))["Tgid"]); err == nil {
		pid = group
	}
	for depth := 0; pid > 1 && depth < 64; depth++ {
		if pid == os.Getpid() {
			return true
		}
		pid = parentOf(pid)
	}
	return false
}

// ancestors are the parent, its parent and so on, as far as PID 1, which is not among them.
func ancestors() []int {
	var pids []int
	for pid := os.Getppid(); pid > 1 && len(pids) < 64; pid = parentOf(pid) {
		pids = append(pids, pid)
	}
	return pids
}

// processes says that no process but the tool's own can be seen, and that none can be reached.
func processes(p *probe) {
	own := append(ancestors(), 1)
	var strangers []string
	for _, pid := range visible() {
		if !mine(pid) && !slices.Contains(own, pid) {
			comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
			strangers = append(strangers, fmt.Sprintf("%d:%s", pid, bytes.TrimSpace(comm)))
		}
	}
	p.none("strangers in /proc", strangers)
	p.hostProcess()
	p.canary()
	p.guesses()
	for _, t := range p.targets() {
		p.attackProcess(t)
		p.filesOf(t)
	}
	p.everybody()
}

// hostProcess says that the host's pid means nothing here.
func (p *probe) hostProcess() {
	pid := p.env.HostPID
	if pid <= lastGuess || mine(pid) {
		p.info("host's pid", "%d: not known, or the probe's own", pid)
		return
	}
	if slices.Contains(ancestors(), pid) && inodeIs("/proc/self/ns/pid", p.env.Namespaces["pid"]) {
		p.holds("host's pid", false, "%d is an ancestor in the host's namespace", pid)
		return
	}
	p.refused("signal to the host's pid", unix.Kill(pid, 0))
	_, err := os.Lstat(fmt.Sprintf("/proc/%d", pid))
	p.refused("host's pid in /proc", err)
}

func inodeIs(path string, want uint64) bool {
	inode, err := inodeOf(path)
	return err == nil && inode == want
}

// canary looks for the host's secret in what processes show of themselves.
func (p *probe) canary() {
	if p.env.Canary == "" {
		p.info("canary", "none given")
		return
	}
	var found []string
	for _, pid := range visible() {
		for _, name := range []string{"environ", "cmdline", "comm"} {
			file := fmt.Sprintf("/proc/%d/%s", pid, name)
			if b, err := os.ReadFile(file); err == nil && bytes.Contains(b, []byte(p.env.Canary)) {
				found = append(found, file)
			}
		}
	}
	p.none("canary in /proc", found)
	p.holds("canary in the environment", !strings.Contains(strings.Join(os.Environ(), "\n"), string(p.env.Canary)), "")
	var names []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		names = append(names, name)
	}
	p.info("environment", "%s", listed(names))
}

// prey is a process to attack.
type prey struct {
	name string
	pid  int
	// first is PID 1 of the sandbox, which signals may be sent to: the kernel keeps them from it.
	first bool
}

// targets are PID 1, every ancestor and, within bounds, every stranger; outside a sandbox only PID 1 and the parent.
func (p *probe) targets() []prey {
	list := []prey{{"pid 1", 1, true}}
	if !p.boxed {
		return append(list, prey{"the parent", os.Getppid(), false})
	}
	for _, pid := range ancestors() {
		list = append(list, prey{fmt.Sprintf("ancestor %d", pid), pid, false})
	}
	known := len(list)
	for _, pid := range visible() {
		if !mine(pid) && pid != 1 && !slices.Contains(ancestors(), pid) && len(list) < known+maxTargets {
			list = append(list, prey{fmt.Sprintf("stranger %d", pid), pid, false})
		}
	}
	return list
}

// guesses tries low pids: the sandbox's own helpers have them, whether /proc shows them or not. That a signal to them is
// refused tells that they are there, and no more.
func (p *probe) guesses() {
	var answered, seen, limits []string
	threads, _ := filepath.Glob("/proc/1/task/*")
	for pid := 2; pid <= lastGuess; pid++ {
		if mine(pid) || slices.Contains(threads, fmt.Sprintf("/proc/1/task/%d", pid)) {
			continue
		}
		name := strconv.Itoa(pid)
		if unix.Kill(pid, 0) == nil {
			answered = append(answered, name)
		}
		if _, err := os.Lstat("/proc/" + name); err == nil && !slices.Contains(ancestors(), pid) {
			seen = append(seen, name)
		}
		if unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &unix.Rlimit{}) == nil {
			limits = append(limits, name)
		}
	}
	p.none("low pids that take a signal", answered)
	p.none("low pids in /proc", seen)
	p.none("low pids that show their limits", limits)
}

// attackProcess tries what acts on another process. What would change it sets what is there already.
func (p *probe) attackProcess(t prey) {
	a := newArena()
	defer a.free()
	pid := uintptr(t.pid)
	local, remote, buffer := a.words(uint64(a.words(0)), 8), a.words(0x400000, 8), a.words(make([]uint64, 128)...)
	pidfd := call(unix.SYS_PIDFD_OPEN, pid, 0).orEnd()
	nice, _ := unix.Getpriority(unix.PRIO_PROCESS, t.pid) // as the kernel has it: 20 less the nice value
	var cpus unix.CPUSet
	_ = unix.SchedGetaffinity(t.pid, &cpus)
	mask := a.words(uint64(cpus[0]), uint64(cpus[1]), uint64(cpus[2]), uint64(cpus[3]))
	for _, try := range []struct {
		name  string
		steps []step
	}{
		{"ptrace", []step{call(unix.SYS_PTRACE, unix.PTRACE_SEIZE, pid, 0, 0)}},
		{"pidfd_getfd", []step{pidfd, call(unix.SYS_PIDFD_GETFD, 0, 0, 0).with(1, 0)}},
		{"process_madvise", []step{pidfd, call(unix.SYS_PROCESS_MADVISE, 0, remote, 1, unix.MADV_COLD, 0).with(1, 0)}},
		{"kcmp", []step{call(unix.SYS_KCMP, pid, pid, 2, 0, 0)}},
		{"prlimit", []step{call(unix.SYS_PRLIMIT64, pid, unix.RLIMIT_NOFILE, 0, buffer)}},
		{"setpriority", []step{call(unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, pid, minus(nice-20))}},
		{"sched_setaffinity", []step{call(unix.SYS_SCHED_SETAFFINITY, pid, 32, mask)}},
		{"get_robust_list", []step{call(unix.SYS_GET_ROBUST_LIST, pid, buffer, buffer)}},
		{"move_pages", []step{call(unix.SYS_MOVE_PAGES, pid, 0, 0, 0, 0, 0)}},
		{"perf_event_open", []step{call(unix.SYS_PERF_EVENT_OPEN, a.words(1|128<<32, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), pid, minus(1), minus(1), 0)}},
		{"setpgid", []step{call(unix.SYS_SETPGID, pid, 0)}},
	} {
		if changes := slices.Contains([]string{"ptrace", "setpriority", "sched_setaffinity"}, try.name); changes && !p.boxed && t.first {
			continue // leave the machine's init alone
		}
		p.refused(try.name+" of "+t.name, attempt(try.steps...).err())
	}
	read := attempt(call(unix.SYS_PROCESS_VM_READV, pid, local, 1, remote, 1, 0))
	// EFAULT is an answer about the other's memory.
	p.add(Fact{Case: "process_vm_readv of " + t.name, Errno: read.name(), Escaped: read.ran && (read.errno == 0 || read.errno == unix.EFAULT)})
	p.signals(t)
}

// signals asks whether the process could be signalled.
func (p *probe) signals(t prey) {
	for name, o := range map[string]outcome{
		"kill":              attempt(call(unix.SYS_KILL, uintptr(t.pid), 0)),
		"tgkill":            attempt(call(unix.SYS_TGKILL, uintptr(t.pid), uintptr(t.pid), 0)),
		"pidfd_send_signal": attempt(call(unix.SYS_PIDFD_OPEN, uintptr(t.pid), 0).orEnd(), call(unix.SYS_PIDFD_SEND_SIGNAL, 0, 0, 0, 0).with(1, 0)),
	} {
		if t.first && p.boxed {
			p.info(name+" of "+t.name, "%s", o.name())
			continue
		}
		p.refused(name+" of "+t.name, o.err())
	}
}

// filesOf tries what /proc shows of another process.
func (p *probe) filesOf(t prey) {
	dir := fmt.Sprintf("/proc/%d/", t.pid)
	for _, name := range strings.Fields("environ maps auxv syscall stack io pagemap smaps") {
		// Some of these open for everybody and refuse, or hold nothing, when read.
		fd, err := unix.Open(dir+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		n := 0
		if err == nil {
			n, err = unix.Pread(fd, make([]byte, 64), 0)
			unix.Close(fd)
		}
		p.holds("read "+name+" of "+t.name, err != nil || n == 0, "%d bytes %s", n, errnoName(err))
	}
	for _, name := range strings.Fields("root cwd exe fd fdinfo map_files ns/mnt ns/user") {
		p.refused("open "+name+" of "+t.name, openOnly(dir+name, unix.O_RDONLY))
	}
	for _, name := range strings.Fields("mem clear_refs oom_score_adj coredump_filter comm setgroups uid_map exe") {
		p.refused("write "+name+" of "+t.name, openOnly(dir+name, unix.O_WRONLY))
	}
}

// everybody asks about all processes but PID 1 at once. An ancestor would answer, so it counts only without one.
func (p *probe) everybody() {
	err := unix.Kill(-1, 0)
	if len(ancestors()) > 0 {
		p.info("signal to all", "%s: there are ancestors beside pid 1", errnoName(err))
		return
	}
	p.refused("signal to all", err)
}
