package export

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestHostileTree(t *testing.T) {
	dir, w := workspace(t, tree{"real/file": "real"})
	in := func(name string) string { return filepath.Join(dir, name) }
	for name, target := range map[string]string{
		"passwd": "/etc/passwd", "up": "../../..", "etc": "/etc", "dir": "real", "self": "self", "gone": "gone2", "proc": "/proc/self/root",
	} {
		must(t, os.Symlink(target, in(name)))
	}
	must(t, syscall.Mkfifo(in("fifo"), 0o666))
	must(t, syscall.Mknod(in("socket"), syscall.S_IFSOCK|0o666, 0))
	must(t, os.WriteFile(in("sparse"), nil, 0o644))
	must(t, os.Truncate(in("sparse"), 1<<40))
	must(t, os.Link(in("real/file"), in("link")))

	to := t.TempDir()
	l, err := copyTo(t.Context(), w, to, Limits{})
	must(t, err)
	wantListing(t, l,
		"dir 0 symbolic link", "etc 0 symbolic link", "fifo 0 named pipe", "gone 0 symbolic link", "link 4", "passwd 0 symbolic link",
		"proc 0 symbolic link", "real/file 4", "self 0 symbolic link", "socket 0 socket", "sparse 1099511627776 too large: more than 16777216 bytes",
		"up 0 symbolic link")
	wantTree(t, to, tree{"real/file": "real", "link": "real"})
	if l.Bytes != 8 {
		t.Errorf("%d bytes", l.Bytes)
	}
}

func TestDevices(t *testing.T) {
	dir, w := workspace(t, nil)
	for name, typ := range map[string]uint32{"char": syscall.S_IFCHR, "block": syscall.S_IFBLK} {
		err := syscall.Mknod(filepath.Join(dir, name), typ|0o666, int(unix.Mkdev(1, 5)))
		if errors.Is(err, syscall.EPERM) {
			t.Skip("missing: the capability CAP_MKNOD")
		}
		must(t, err)
	}
	l, err := copyTo(t.Context(), w, t.TempDir(), Limits{})
	must(t, err)
	wantListing(t, l, "block 0 device", "char 0 device")
}

func TestMountIsNotCrossed(t *testing.T) {
	dir, w := workspace(t, tree{"mount/": "", "file": ""})
	for target, source := range map[string]string{"mount": "/etc", "file": "/etc/passwd"} {
		target = filepath.Join(dir, target)
		err := syscall.Mount(source, target, "", syscall.MS_BIND, "")
		if errors.Is(err, syscall.EPERM) {
			t.Skip("missing: the capability CAP_SYS_ADMIN (to mount)")
		}
		must(t, err)
		t.Cleanup(func() { must(t, syscall.Unmount(target, syscall.MNT_DETACH)) })
	}
	l, err := List(t.Context(), w, Limits{})
	must(t, err)
	wantListing(t, l, "file 0 a mount", "mount 0 a mount")
}

func TestNames(t *testing.T) {
	long := strings.Repeat("\xff", 255)
	names := tree{
		"line\nbreak": "1", "\xff\xfe": "2", "%FF%FE": "3", "..evil": "4", "...": "5", "-rf": "6", "tab\t": "7",
		"\x1b[31mred": "8", long: "9", long[:254] + "x": "10", "100%": "11", "d\xff/é": "12", "d%FF/é": "13", strings.Repeat("a", 255): "14",
		"\u202etxt.exe": "15",
	}
	_, w := workspace(t, names)
	to := t.TempDir()
	l, err := copyTo(t.Context(), w, to, Limits{})
	must(t, err)
	want := tree{}
	for name, content := range names {
		var parts []string
		for part := range strings.SplitSeq(name, "/") {
			parts = append(parts, escape(part))
		}
		want[strings.Join(parts, "/")] = content
	}
	if len(want) != len(names) || len(l.Files) != len(names) {
		t.Errorf("%d names, %d files, %d paths", len(names), len(l.Files), len(want))
	}
	for _, f := range l.Files {
		if _, ok := want[f.Path]; !ok || f.Skipped != "" {
			t.Errorf("%+v", f)
		}
	}
	wantTree(t, to, want)
}

func TestManyFiles(t *testing.T) {
	dir, w := workspace(t, tree{"original": "x"})
	for i := range 20_000 {
		must(t, os.Link(filepath.Join(dir, "original"), filepath.Join(dir, fmt.Sprint(i))))
	}
	to := t.TempDir()
	l, err := copyTo(t.Context(), w, to, Limits{Files: 50})
	must(t, err)
	if !l.Truncated || len(l.Files) != 50 || l.Bytes != 50 {
		t.Errorf("truncated %v, %d files, %d bytes", l.Truncated, len(l.Files), l.Bytes)
	}
	if entries, err := os.ReadDir(to); err != nil || len(entries) != 50 {
		t.Errorf("%d copied, %v", len(entries), err)
	}
}

// Paths may be longer than PATH_MAX.
func TestDeepTree(t *testing.T) {
	dir := t.TempDir()
	name := strings.Repeat("d", 255)
	root, err := os.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	const depth = 40
	must(t, root.MkdirAll(strings.Repeat(name+"/", depth), 0o755))
	bottom := strings.Repeat(name+"/", 32)
	must(t, root.WriteFile(bottom+"file", []byte("deep"), 0o644))
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })

	to, err := os.OpenRoot(t.TempDir())
	must(t, err)
	defer to.Close()
	l, err := copyTo(t.Context(), openPath(t, dir), to.Name(), Limits{})
	must(t, err)
	wantListing(t, l, bottom+name+" 0 deeper than 32 folders", bottom+"file 4")
	if raw, err := to.ReadFile(bottom + "file"); err != nil || string(raw) != "deep" {
		t.Errorf("%q, %v", raw, err)
	}
}

// Root may read everything, so another user looks.
func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"folder": 0, "locked": 0o644, "secret": 0} {
		path := filepath.Join(dir, name)
		write(t, path+map[bool]string{true: "", false: "/file"}[name == "secret"], "1")
		must(t, os.Chmod(path, mode))
		t.Cleanup(func() { must(t, os.Chmod(path, 0o700)) })
	}
	w, err := os.Open(dir)
	must(t, err)
	defer w.Close()
	out, err := asNobody(t, w).CombinedOutput()
	const denied = " unreadable: permission denied\n"
	if want := "folder" + denied + "locked/file" + denied + "secret" + denied; err != nil || string(out) != want {
		t.Errorf("listed %q, %v; want %q", out, err, want)
	}
}

// asNobody lists a workspace as a user who is not root.
func asNobody(t *testing.T, w *os.File) *exec.Cmd {
	t.Helper()
	self, err := os.Open("/proc/self/exe")
	must(t, err)
	t.Cleanup(func() { self.Close() })
	cmd := exec.CommandContext(t.Context(), fmt.Sprintf("/proc/self/fd/%d", self.Fd())) // whose folder nobody may not enter
	cmd.Env = append(os.Environ(), roleVar+"="+listRole)
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{w}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	return cmd
}

func playList() error {
	l, err := List(context.Background(), os.NewFile(3, "workspace"), Limits{})
	for _, f := range l.Files {
		fmt.Println(f.Path, f.Skipped)
	}
	return err
}
