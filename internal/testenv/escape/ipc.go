package escape

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// ipc says that the host's shared memory, semaphores, queues and keys are out of reach.
func ipc(p *probe) {
	a := newArena()
	defer a.free()
	p.systemV()
	if p.env.Queue != "" {
		o := attempt(call(unix.SYS_MQ_OPEN, a.str(p.env.Queue), unix.O_RDONLY, 0, 0))
		p.refused("host's message queue", o.err())
		_, err := os.Lstat("/dev/mqueue/" + p.env.Queue)
		p.refused("host's message queue in /dev/mqueue", err)
	}
	for _, dir := range []string{"/dev/mqueue", "/dev/hugepages"} {
		entries, err := os.ReadDir(dir)
		p.holds(dir+" is empty", len(entries) == 0, "%d %s", len(entries), errnoName(err))
	}
	p.keyrings(a)
	p.ownSignals(a)
}

// systemV looks for the host's objects by key, and for any at all: a tool that just began has none.
func (p *probe) systemV() {
	if key := uintptr(p.env.IPCKey); key != 0 {
		p.refused("host's shared memory", attempt(call(unix.SYS_SHMGET, key, 0, 0)).err())
		p.refused("host's semaphores", attempt(call(unix.SYS_SEMGET, key, 0, 0)).err())
		p.refused("host's messages", attempt(call(unix.SYS_MSGGET, key, 0)).err())
	}
	files, _ := filepath.Glob("/proc/sysvipc/*")
	for _, file := range files {
		b, err := os.ReadFile(file)
		lines := strings.Count(string(b), "\n") - 1
		p.holds(file+" is empty", lines <= 0, "%d %s", max(lines, 0), errnoName(err))
	}
	const shmInfo, semInfo, msgInfo = 14, 19, 12
	a := newArena()
	defer a.free()
	buffer := a.bytes(make([]byte, 512))
	// Each returns the highest index in use: 0 for one object, and also for none.
	for name, o := range map[string]outcome{
		"shared memory": attempt(call(unix.SYS_SHMCTL, 0, shmInfo, buffer)),
		"semaphores":    attempt(call(unix.SYS_SEMCTL, 0, 0, semInfo, buffer)),
		"messages":      attempt(call(unix.SYS_MSGCTL, 0, msgInfo, buffer)),
	} {
		p.holds("number of "+name, o.err() != nil || o.ret == 0, "%d %s", o.ret, o.name())
	}
}

// keyrings tries each ring that a process has or shares; keys are not in a namespace of their own before they are filtered.
func (p *probe) keyrings(a *arena) {
	user, description := a.str("user"), a.str("escape-probe")
	for name, ring := range map[string]int{"thread": 1, "process": 2, "session": 3, "user": 4, "user session": 5} {
		p.refused("keyring of the "+name, attempt(call(unix.SYS_KEYCTL, 0, minus(ring), 0)).err())
	}
	const processRing = 2 // ends with the child
	payload := a.str("x")
	p.refused("add a key", attempt(call(unix.SYS_ADD_KEY, user, description, payload, 1, minus(processRing))).err())
	p.blocked("request a key", attempt(call(unix.SYS_REQUEST_KEY, user, description, 0, 0)))
	p.blocked("search for a key", attempt(call(unix.SYS_KEYCTL, 10, minus(4), user, description, 0)))
	p.blocked("persistent keyring", attempt(call(unix.SYS_KEYCTL, 22, minus(1), 0)))
}

// ownSignals tries to have the kernel signal somebody else for the tool.
func (p *probe) ownSignals(a *arena) {
	pair := a.words(0)
	for _, pid := range append(ancestors(), 1) {
		o := attempt(call(unix.SYS_PIPE2, pair, 0).orEnd(), call(unix.SYS_FCNTL, 0, unix.F_SETOWN, uintptr(pid)))
		p.info(fmt.Sprintf("own a descriptor's signals by %d", pid), "%s", o.name())
	}
}
