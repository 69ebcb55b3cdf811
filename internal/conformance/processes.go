package conformance

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is one of those that this sandbox shows: all of them are the
// driver's doing, for it has a PID namespace of its own.
type process struct {
	pid   int
	name  string
	state byte
	pages int64 // resident
}

// processes lists those that run, but for the driver and what was there before
// it (proc_pid_stat(5)).
func (b *bench) processes() (list []process) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() || b.before[pid] {
			continue
		}
		if p, ok := readProcess(pid); ok && p.state != 'Z' && p.state != 'X' {
			list = append(list, p)
		}
	}
	return list
}

func readProcess(pid int) (process, bool) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, false
	}
	text := string(raw)
	open, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return process{}, false
	}
	const residentField = 21 // behind the name: state is the first
	fields := strings.Fields(text[end+1:])
	if len(fields) <= residentField {
		return process{}, false
	}
	pages, _ := strconv.ParseInt(fields[residentField], 10, 64)
	return process{pid: pid, name: text[open+1 : end], state: fields[0][0], pages: pages}, true
}

// others are processes beside the given ones, after they have had a moment to
// end.
func (b *bench) others(known []int) (list []process) {
	b.until(time.Second, func() bool {
		list = slices.DeleteFunc(b.processes(), func(p process) bool { return slices.Contains(known, p.pid) })
		return len(list) == 0
	})
	return list
}

// residentBytes are those of all processes of the binary.
func (b *bench) residentBytes() (n int64) {
	for _, p := range b.processes() {
		n += p.pages * int64(os.Getpagesize())
	}
	return n
}

// sweep kills whatever the binary has started.
func (b *bench) sweep() {
	b.until(sweepLimit, func() bool {
		list := b.processes()
		for _, p := range list {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
		return len(list) == 0
	})
}

// sweepLimit is for what the kernel holds.
const sweepLimit = 10 * time.Second

const pollEvery = 5 * time.Millisecond

// until polls what sends no signal, such as /proc.
func (b *bench) until(limit time.Duration, done func() bool) bool {
	deadline := time.Now().Add(limit)
	for !done() {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(pollEvery)
	}
	return true
}
