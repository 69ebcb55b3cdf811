package escape

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxOrphans stays well below any limit on processes.
	maxOrphans = 16
	// reapWithin is generous, for a starved machine.
	reapWithin = 10 * time.Second
)

// orphans says that PID 1 reaps what it did not make: children that end after their parent, and before it.
func orphans(p *probe) {
	a := newArena()
	defer a.free()
	fork := call(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0)
	short := call(unix.SYS_NANOSLEEP, a.words(0, 2_000_000), 0)
	p.reaped("orphans that end after their parent", fork, short.inGrandchild())
	p.reaped("orphans that end before their parent", fork, short)
}

// reaped makes orphans, the script's grandchildren, and waits until none is left.
func (p *probe) reaped(name string, steps ...step) {
	var left []int
	for range maxOrphans {
		if o := script(0, steps...)[0]; o.err() == nil {
			left = append(left, int(o.ret))
		}
	}
	made, begun := len(left), time.Now()
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		left = present(left)
		if len(left) == 0 || time.Since(begun) > reapWithin {
			break
		}
		time.Sleep(pause)
	}
	p.holds(name, made > 0 && len(left) == 0, "%d made, %d left", made, len(left))
}

// present are those that are still there, running or as zombies, which answer too.
func present(pids []int) []int {
	var left []int
	for _, pid := range pids {
		if err := unix.Kill(pid, 0); err == nil || err == unix.EPERM {
			left = append(left, pid)
		}
	}
	return left
}
