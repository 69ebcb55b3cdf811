package sandbox

import (
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// What cannot be granted by its name cannot be by any other path either.
func TestPathsThatLeadToTheSystem(t *testing.T) {
	dir := realTemp(t)
	links := map[string]string{
		"/etc": "/etc", "/usr": "/usr", "/tmp": "/tmp", "/run": "/run", "/": "/", "/proc": "/proc", "/proc/self": "/proc", "/sys/kernel": "/sys", "/dev/shm": "/dev",
		"/proc/self/root/etc": "/proc", "/proc/1/cwd": "/proc", "../../../../../../../../etc/": "/etc", "/usr/../etc/.": "/etc",
	}
	for target, real := range links {
		name := dir + "/" + strings.NewReplacer("/", "-", ".", "_").Replace(target)
		must(t, os.Symlink(target, name))
		must(t, os.Symlink(name, name+"-again"))
		for _, path := range []string{name, name + "/", name + "/.", name + "-again"} {
			for _, policy := range []Policy{{Read: []string{path}}, {Write: []string{path}}} {
				_, err := policy.Resolve()
				wantError(t, err, "cannot grant "+name, real)
			}
		}
	}
	if _, err := (Policy{Read: []string{"/var/run"}}).Resolve(); err == nil {
		if to, _ := os.Readlink("/var/run"); to == "/run" {
			t.Error("/var/run was granted, which is /run")
		}
	}
}

// bind shows source at a new folder in dir.
func bind(t *testing.T, source, at string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("missing: root rights (to mount)")
	}
	must(t, os.MkdirAll(at, 0o755))
	must(t, unix.Mount(source, at, "", unix.MS_BIND, ""))
	t.Cleanup(func() {
		if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

func TestMountsOfTheSystemAreRefused(t *testing.T) {
	dir := realTemp(t)
	bind(t, "/etc", dir+"/a b/etc")
	bind(t, "/proc", dir+"/proc/p")
	bind(t, "/usr", dir+"/usr/u")
	for path, parts := range map[string][]string{
		dir + "/a b/etc":      {"/etc", "the sandbox has its own"},
		dir + "/a b":          {dir + "/a b/etc in it", "/etc"},
		dir:                   {"in it"},
		dir + "/proc/p":       {"the kernel's own (proc)"},
		dir + "/proc/p/self":  {"/proc"},
		dir + "/proc/p/sys":   {"the kernel's own (proc)"},
		dir + "/proc":         {"the kernel's own (proc)", dir + "/proc/p"},
		dir + "/usr":          {dir + "/usr/u in it"},
		dir + "/usr/../usr/u": {"/usr"},
	} {
		for _, policy := range []Policy{{Read: []string{path}}, {Write: []string{path}}} {
			_, err := policy.Resolve()
			wantError(t, err, append(parts, "cannot grant "+dir)...)
		}
	}
	resolve(t, Policy{Read: []string{dir + "/a b/etc/hostname"}}).Close()
}

// The host's programs are everybody's to read, and nobody's to write as a whole.
func TestProgramsCannotBeWritten(t *testing.T) {
	link := realTemp(t) + "/bin"
	must(t, os.Symlink("/bin", link))
	for _, path := range []string{"/bin", "/lib", link} {
		_, err := Policy{Write: []string{path}}.Resolve()
		wantError(t, err, "cannot grant", "the sandbox has its own")
		must(t, Policy{Read: []string{path}}.Check())
	}
}

// Root follows no link that somebody else can put where it is.
func TestLinksThatOthersCanSteer(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("missing: root rights (to make folders of others)")
	}
	dir := realTemp(t)
	must(t, os.Mkdir(dir+"/target", 0o755))
	for name, make := range map[string]func(string) error{
		"sticky": func(d string) error { return os.Chmod(d, 0o777|os.ModeSticky) },
		"open":   func(d string) error { return os.Chmod(d, 0o777) },
		"group":  func(d string) error { return os.Chmod(d, 0o775) },
		"other":  func(d string) error { return os.Chown(d, 4242, 0) },
	} {
		folder := dir + "/" + name
		must(t, errors.Join(os.Mkdir(folder, 0o755), os.Symlink(dir+"/target", folder+"/link"), os.MkdirAll(folder+"/own", 0o755), make(folder)))
		must(t, os.Symlink(folder+"/link", dir+"/by-"+name))
		for _, path := range []string{folder + "/link", folder + "/link/", dir + "/by-" + name} {
			_, err := Policy{Write: []string{path}}.Resolve()
			wantError(t, err, "cannot grant "+strings.TrimSuffix(path, "/"), dir+"/target", folder)
		}
		_, err := Policy{Workspace: folder + "/link/x"}.Resolve()
		wantError(t, err, dir+"/target")
		must(t, Policy{Write: []string{folder + "/own"}}.Check())
	}
	must(t, os.Symlink("target", dir+"/link"))
	must(t, Policy{Write: []string{dir + "/link"}}.Check())
}

// What was judged is shown, whatever its path has come to name since.
func TestGrantIsWhatWasJudged(t *testing.T) {
	w := enter(t)
	dir := realTemp(t)
	for _, name := range []string{"/granted", "/secret"} {
		must(t, os.Mkdir(dir+name, 0o755))
		mustWrite(t, dir+name+"/file", name)
	}
	p := w.plan(Policy{Write: []string{dir + "/granted"}}, Task{})
	must(t, errors.Join(os.Rename(dir+"/granted", dir+"/moved"), os.Symlink("secret", dir+"/granted")))
	c := w.start(p, "do", []string{"read:" + dir + "/granted/file"}, nil)
	if c.err == nil {
		c.err = c.Started(wait.Context(t))
	}
	if os.Geteuid() != 0 { // its zygote has mounts of its own, and looks there
		wantError(t, c.err, dir+"/granted", "since it was resolved")
		return
	}
	must(t, c.err)
	w.wantDo(p, "read:"+dir+"/granted/file", "/granted")
}

// Somebody who can write to the parent exchanges the granted folder for a link
// all the time, and never has the link's target shown.
func TestSwappedLinkIsNeverFollowed(t *testing.T) {
	w := enter(t)
	if os.Geteuid() != 0 {
		t.Skip("missing: root rights (to make a folder of others)")
	}
	dir, secret := realTemp(t), realTemp(t)
	mustWrite(t, secret+"/file", "secret")
	must(t, errors.Join(os.Chmod(dir, 0o777), os.Mkdir(dir+"/granted", 0o755), os.Symlink(secret, dir+"/link")))
	mustWrite(t, dir+"/granted/file", "granted")
	stop, over := make(chan struct{}), sync.WaitGroup{}
	over.Go(func() {
		for !closed(stop) {
			_ = unix.Renameat2(unix.AT_FDCWD, dir+"/granted", unix.AT_FDCWD, dir+"/link", unix.RENAME_EXCHANGE)
		}
	})
	defer over.Wait()
	defer close(stop)
	shown := 0
	for range 400 {
		r, err := Policy{Write: []string{dir + "/granted"}}.Resolve()
		if err != nil {
			continue
		}
		p, err := r.Plan(w.f, Task{Programs: []Program{self(t)}})
		must(t, err)
		if got := w.do(p, "read:"+dir+"/granted/file")[0]; got != "granted" {
			t.Fatalf("the call saw %q", got)
		}
		r.Close()
		shown++
	}
	if shown == 0 {
		t.Error("nothing was ever granted")
	}
}

func self(t testing.TB) Program {
	t.Helper()
	path, err := os.Executable()
	must(t, err)
	return Program{Source: path, Target: "/tool"}
}

// What was judged is opened again for a start behind the policy's end, and nothing else.
func TestClosedGrants(t *testing.T) {
	w := enter(t)
	dir := realTemp(t) + "/granted"
	must(t, os.Mkdir(dir, 0o755))
	p := w.plan(Policy{Read: []string{dir}}, Task{})
	for range 2 {
		p.Close()
		p.Close()
		if p.held.uses != 0 || !p.held.shut {
			t.Errorf("%d starts use it, closed %v", p.held.uses, p.held.shut)
		}
		w.wantDo(p, "list:"+dir, "")
	}
	must(t, os.Rename(dir, dir+".old"))
	must(t, os.Mkdir(dir, 0o755))
	wantError(t, w.start(p, "sleep", nil, nil).err, "has been replaced since it was resolved")
}

func TestParseMounts(t *testing.T) {
	table := parseMounts("36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 - ext3 /dev/root rw\nbroken\nx 1 0:1 / / rw - proc\n")
	if len(table) != 1 || table[0] != (mountPoint{36, "98:0", "/mnt1", "/mnt 2", "ext3"}) {
		t.Errorf("%+v", table)
	}
}
