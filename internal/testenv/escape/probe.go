package escape

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxListed bounds the names in one fact, and the facts of one walk.
const maxListed = 24

// probe is a group that runs.
type probe struct {
	name  string
	env   Expect
	boxed bool // see Expect.Sandboxed
	out   *json.Encoder
	facts int
	err   error // the first failure to write
}

func (p *probe) add(f Fact) {
	f.Probe = p.name
	p.facts++
	if err := p.out.Encode(f); err != nil && p.err == nil {
		p.err = fmt.Errorf("cannot write fact: %w", err)
	}
}

// info is a fact for the reader only.
func (p *probe) info(name, format string, args ...any) {
	p.add(Fact{Case: name, Detail: fmt.Sprintf(format, args...)})
}

// holds is a fact that is contained if ok.
func (p *probe) holds(name string, ok bool, format string, args ...any) {
	p.add(Fact{Case: name, Detail: fmt.Sprintf(format, args...), Escaped: !ok})
}

// refused is a fact that is contained if the attempt failed, for whatever reason.
func (p *probe) refused(name string, err error) {
	p.add(Fact{Case: name, Errno: errnoName(err), Escaped: err == nil})
}

// none is a fact that is contained if found is empty.
func (p *probe) none(name string, found []string) {
	p.holds(name, len(found) == 0, "%d: %s", len(found), listed(found))
}

// blocked is a fact about a system call that a filter, or a missing capability, has to stop before its arguments matter.
// Any other answer means that the kernel's code for it was reached.
func (p *probe) blocked(name string, o outcome) {
	p.add(Fact{Case: name, Errno: o.name(), Escaped: !o.blocked()})
}

func listed(names []string) string {
	if len(names) > maxListed {
		names = append(slices.Clone(names[:maxListed]), "...")
	}
	return strings.Join(names, " ")
}

// errnoName names an error as the kernel does, "" for none.
func errnoName(err error) string {
	if err == nil {
		return ""
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		if name := unix.ErrnoName(errno); name != "" {
			return name
		}
		return fmt.Sprintf("errno %d", int(errno))
	}
	return err.Error()
}

// openOnly opens a path and closes it at once. It waits for nothing, truncates nothing and takes no terminal. A program
// that cannot be opened for writing because it runs is only busy: then its permissions count.
func openOnly(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
	}
	if err == unix.ETXTBSY {
		err = unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK, unix.AT_EACCESS)
	}
	if err == nil && flags&unix.O_WRONLY != 0 && sealed(path) {
		return unix.EPERM // as a write answers
	}
	return err
}

// sealed says whether a path is a memfd that nobody can write to any more.
func sealed(path string) bool {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	return err == nil && seals&unix.F_SEAL_WRITE != 0
}

// mayWriteTo says why a file or folder that is not the probe's cannot be written. Outside a sandbox it only asks: an
// open for writing would make somebody else's exec of the file fail for a moment.
func (p *probe) mayWriteTo(path string) error {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return err
	}
	if !p.boxed || st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK, unix.AT_EACCESS)
	}
	return openOnly(path, unix.O_WRONLY)
}

// scratch is a new folder of the probe's own, with the function that removes it; "" if nothing can be written.
func (p *probe) scratch() (string, func()) {
	for _, parent := range append(p.env.writable(), os.TempDir()) {
		if dir, err := os.MkdirTemp(parent, "escape-"); err == nil {
			return dir, func() { _ = os.RemoveAll(dir) }
		}
	}
	return "", func() {}
}

// fields reads the "Name:\tvalue" lines of a file as in /proc/self/status.
func fields(path string) map[string]string {
	values := map[string]string{}
	b, _ := os.ReadFile(path)
	for line := range strings.Lines(string(b)) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			values[name] = strings.TrimSpace(value)
		}
	}
	return values
}
