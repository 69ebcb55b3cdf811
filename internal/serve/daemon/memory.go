package daemon

import (
	"bufio"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"github.com/toolhost/toolhost/cgroup"
)

// bound keeps the heap below the memory limit of the daemon's cgroup, with an eighth of it
// left for what is not heap. GOMEMLIMIT in the environment takes precedence.
func bound() {
	limit, ok := cgroup.OwnMemoryLimit()
	if ok && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit / 8 * 7)
	}
}

// spareBytes is by how much a heap may grow, beyond its own size, before it is collected.
const spareBytes = 12 << 20

// spare is never touched, and so takes none of the machine's memory.
var spare []byte

// Spare makes the collector run less often on a small heap, which it would otherwise scan
// every few dozen calls. GOGC in the environment takes precedence, and with little memory
// Spare does nothing.
func Spare() {
	if spare == nil && os.Getenv("GOGC") == "" && debug.SetMemoryLimit(-1) >= 16*spareBytes {
		spare = make([]byte, spareBytes)
	}
}

// Threads for Go code: up to threadsPerCPU of a CPU, and maxThreads in all.
const (
	threadsPerCPU = 4
	maxThreads    = 8
)

// spread has more threads run Go code than there are CPUs, on a small machine. Where clients
// keep all CPUs busy, as with large bodies, short work then waits for the kernel's time
// slices of a few milliseconds, and not for Go's of ten. GOMAXPROCS in the environment takes
// precedence.
func spread() {
	cpus := runtime.GOMAXPROCS(0)
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(max(cpus, min(threadsPerCPU*cpus, maxThreads)))
	}
}

// inMemory is how many bytes of the daemon are in memory (proc_pid_statm(5)); 0 if unknown.
func inMemory() int64 {
	statm, err := os.ReadFile("/proc/self/statm")
	if fields := strings.Fields(string(statm)); err == nil && len(fields) > 1 {
		pages, _ := strconv.ParseInt(fields[1], 10, 64)
		return pages * int64(os.Getpagesize())
	}
	return 0
}

// shrink returns memory that an idle daemon does not need, of the heap and of the program
// itself. The kernel maps pages around each one that is touched, so that after a while
// nearly the whole program is mapped; what is used again comes from the page cache without a
// read.
func shrink() {
	debug.FreeOSMemory()
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer smaps.Close()
	for _, m := range untouched(smaps, program) {
		_ = syscall.Madvise(unsafe.Slice((*byte)(unsafe.Add(nil, m.start)), m.end-m.start), syscall.MADV_DONTNEED)
	}
}

type mapping struct{ start, end uintptr }

// untouched returns the mappings of a program that are read-only and were never written to,
// as the loader writes to what it then protects (proc_pid_smaps(5)): all of them can be read
// from the file again.
func untouched(smaps io.Reader, program string) (list []mapping) {
	var now mapping
	var ours, clean bool
	settle := func() {
		if ours && clean && now.start < now.end {
			list = append(list, now)
		}
		ours, clean = false, false
	}
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) >= 5 && strings.Contains(fields[0], "-"):
			settle()
			now = parseRange(fields[0])
			ours = len(fields) == 6 && fields[5] == program && (fields[1] == "r-xp" || fields[1] == "r--p")
		case len(fields) == 3 && fields[0] == "Anonymous:":
			clean = fields[1] == "0"
		case len(fields) == 3 && fields[0] == "Swap:":
			clean = clean && fields[1] == "0"
		}
	}
	settle()
	return list
}

// parseRange reads a line's address range; it is empty if malformed.
func parseRange(s string) mapping {
	from, to, _ := strings.Cut(s, "-")
	start, err := strconv.ParseUint(from, 16, 64)
	end, endErr := strconv.ParseUint(to, 16, 64)
	if err != nil || endErr != nil {
		return mapping{}
	}
	return mapping{uintptr(start), uintptr(end)}
}
