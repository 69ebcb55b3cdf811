package sandbox

import (
	"crypto/rand"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// groups are cgroup2 directories of a test's own, in a mount that nobody else
// sees.
type groups struct {
	t     testing.TB
	mount int
	names []string
}

func newGroups(t testing.TB) *groups {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("missing: root rights (to make cgroups)")
	}
	fs, err := unix.Fsopen("cgroup2", unix.FSOPEN_CLOEXEC)
	must(t, err)
	defer unix.Close(fs)
	must(t, unix.FsconfigCreate(fs))
	mount, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	must(t, err)
	g := &groups{t: t, mount: mount}
	t.Cleanup(func() { g.remove(); unix.Close(mount) })
	return g
}

// add makes one; kill ends all that was and will be born there.
func (g *groups) add() (dir *os.File, kill func()) {
	g.t.Helper()
	name := "sandbox-test-" + rand.Text()
	must(g.t, unix.Mkdirat(g.mount, name, 0o700))
	g.names = append(g.names, name)
	fd, err := unix.Openat(g.mount, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(g.t, err)
	dir = os.NewFile(uintptr(fd), name)
	return dir, func() { g.kill(name); _ = dir.Close() }
}

func (g *groups) kill(name string) {
	fd, err := unix.Openat(g.mount, name+"/cgroup.kill", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	must(g.t, err)
	_, err = unix.Write(fd, []byte("1"))
	must(g.t, err)
	_ = unix.Close(fd)
}

func (g *groups) remove() {
	for _, name := range g.names {
		wait.Until(g.t, "cgroup "+name+" is removed", func() bool {
			return unix.Unlinkat(g.mount, name, unix.AT_REMOVEDIR) == nil
		})
	}
	g.names = nil
}
