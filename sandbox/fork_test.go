package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// Launchers are forks of the zygote that have executed nothing: what one has in
// its memory or open must be its own call's.
func TestALauncherKnowsNothingOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may read a launcher's memory")
	}
	w := enter(t)
	const calls = 6
	var bait []string
	var started []*call
	for i := range calls {
		bait = append(bait, fmt.Sprintf("bait-%d-%d", i, os.Getpid()))
		folder := filepath.Join(t.TempDir(), bait[i])
		must(t, os.Mkdir(folder, 0o755))
		p := w.plan(Policy{Read: []string{folder}}, Task{Secrets: []Secret{{Name: "s", Data: []byte(bait[i] + "-secret")}}})
		c := w.start(p, "echo", []string{bait[i] + "-argument"}, func(s *Spec) { s.Env = append(s.Env, "BAIT="+bait[i]) })
		must(t, c.err)
		must(t, c.Started(wait.Context(t)))
		started = append(started, c)
	}
	for i, c := range started {
		memory := memoryOf(t, c.PID())
		for j := range bait {
			if found := bytes.Contains(memory, []byte(bait[j])); found != (i == j) {
				t.Errorf("launcher %d: bait of call %d found: %v", i, j, found)
			}
		}
		if extra := slices.DeleteFunc(openFiles(t, c.PID()), c.isOwn); len(extra) > 0 {
			t.Errorf("launcher %d has %q", i, extra)
		}
		maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", c.PID()))
		must(t, err)
		if bytes.Contains(maps, []byte("/dev/zero")) {
			t.Errorf("launcher %d shares memory with the zygote:\n%s", i, maps)
		}
	}
}

// isOwn says whether a launcher is to have what this link leads to: its control
// socket, its children's signals, and the lock of its user.
func (c *call) isOwn(file string) bool {
	return strings.HasPrefix(file, "socket:") || file == "anon_inode:[signalfd]" || c.who.slot.lock != nil && file == c.who.slot.lock.Name()
}

func openFiles(t *testing.T, pid int) (files []string) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd/", pid)
	entries, err := os.ReadDir(dir)
	must(t, err)
	sockets := 0
	for _, e := range entries {
		file, err := os.Readlink(dir + e.Name())
		must(t, err)
		if strings.HasPrefix(file, "socket:") {
			if sockets++; sockets > 1 {
				file = "a second " + file
			}
		}
		files = append(files, file)
	}
	return files
}

// memoryOf reads all that a process may read of itself.
func memoryOf(t *testing.T, pid int) (all []byte) {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	must(t, err)
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	must(t, err)
	defer mem.Close()
	for line := range strings.Lines(string(maps)) {
		fields := strings.Fields(line)
		from, to, _ := strings.Cut(fields[0], "-")
		begin, err := strconv.ParseUint(from, 16, 64)
		must(t, err)
		end, err := strconv.ParseUint(to, 16, 64)
		must(t, err)
		if !strings.HasPrefix(fields[1], "r") || strings.Contains(line, "[v") { // vvar cannot be read
			continue
		}
		part := make([]byte, end-begin)
		n, err := mem.ReadAt(part, int64(begin))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all = append(all, part[:n]...)
	}
	return all
}

// Whatever blocks a birth, a file system or a cgroup, holds up no other one.
func TestABlockedBirthDelaysNoOther(t *testing.T) {
	w := enter(t)
	p := w.plan(Policy{}, Task{})
	reader, full := pipe(t)
	fillPipe(t, full)
	var blocked sync.WaitGroup
	for range 40 {
		blocked.Go(func() {
			stdin, _ := pipe(t)
			_, stdout := pipe(t)
			spec := w.spec(p, "exit7", nil, stdin, stdout)
			spec.Into = func(birth func(*os.File, []*os.File, []*os.File) error) error {
				return birth(nil, []*os.File{full}, nil) // a write to it takes as long as the test wants
			}
			process, err := w.Start(wait.Context(t), spec)
			if err != nil {
				t.Error(err)
				return
			}
			if status := <-process.Exited(); status.ExitStatus() != 7 {
				t.Errorf("status %#x", status)
			}
			process.Kill()
			process.Release()
		})
	}
	zygote := zygotePID(t)
	wait.Until(t, "all blocked births are under way", func() bool { return len(children(t, zygote, "toolhost-zygote")) == 40 })
	w.makesCalls(p)
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	blocked.Wait()
}

func fillPipe(t *testing.T, file *os.File) {
	t.Helper()
	fd := int(file.Fd())
	must(t, unix.SetNonblock(fd, true))
	for {
		if _, err := unix.Write(fd, make([]byte, 4096)); err == unix.EAGAIN {
			break
		}
	}
	must(t, unix.SetNonblock(fd, false))
}

// A birth that fails halfway closes what is its own, and nothing of the zygote's.
func TestAFailedBirthClosesItsOwn(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root has id-mapped grants")
	}
	w := enter(t)
	c := w.run(w.plan(Policy{}, Task{}), "echo")
	c.line()
	zygote := zygotePID(t)
	var was unix.Rlimit
	must(t, unix.Prlimit(zygote, unix.RLIMIT_NOFILE, nil, &was))
	must(t, unix.Prlimit(zygote, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 100, Max: was.Max}, nil)) // no namespace can be kept
	w.makesCalls(w.plan(Policy{Read: []string{t.TempDir(), t.TempDir(), t.TempDir()}}, Task{}))
	c.echoes()
	for fd := range 3 {
		if to, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", zygote, fd)); to != os.DevNull {
			t.Errorf("descriptor %d of the zygote: %q, %v", fd, to, err)
		}
	}
}

// Every granted path is a file of the birth's request, and all of them are shown.
func TestManyGrants(t *testing.T) {
	w := enter(t)
	dir := t.TempDir()
	var paths []string
	for i := range 220 {
		path := filepath.Join(dir, strconv.Itoa(i))
		must(t, os.Mkdir(path, 0o755))
		paths = append(paths, path)
	}
	w.wantDo(w.plan(Policy{Read: paths}, Task{}), "list:"+paths[0], "", "list:"+paths[219], "")
}

// A host without descriptors ends what it cannot take, and says so.
func TestABirthThatCannotBeTaken(t *testing.T) {
	w := enter(t)
	p := w.plan(Policy{}, Task{})
	w.makesCalls(p)
	var was unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	stdin, _ := pipe(t)
	_, stdout := pipe(t)
	spec := w.spec(p, "sleep", nil, stdin, stdout)
	spec.Into = func(birth func(*os.File, []*os.File, []*os.File) error) error {
		must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: was.Max})) // not one more
		defer func() { must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &was)) }()
		return birth(nil, nil, nil)
	}
	_, err := w.Start(wait.Context(t), spec)
	if !errors.Is(err, unix.EMFILE) || !errors.Is(err, ErrUncertain) {
		t.Errorf("error %v", err)
	}
	zygote := zygotePID(t)
	wait.Until(t, "no launcher is left", func() bool { return len(children(t, zygote, "")) == 0 })
	w.makesCalls(p)
}
