package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/testenv/binaries"
	"github.com/toolhost/toolhost/internal/testenv/escape"
)

const (
	// someone is a user without rights, whom passwd(5) and subuid(5) name only
	// in the mount namespace of a test.
	someone     = 65533
	users       = "root:x:0:0::/root:/bin/sh\nsomeone:x:65533:65533::/:/bin/sh\n"
	subordinate = "someone:700000:65536\n"
)

// asSomeone runs a toolhost command line as a user to whom a cgroup was
// delegated, and returns its output and exit status.
func asSomeone(t *testing.T, dir, subids string, args ...string) (stdout, stderr []byte, code int) {
	t.Helper()
	return asUserWith(t, delegate, dir, subids, args...)
}

// asUserWith does so once the user has been given what is his.
func asUserWith(t *testing.T, give func(*testing.T, int), dir, subids string, args ...string) (stdout, stderr []byte, code int) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("becomes another user: needs root")
	}
	root, err := cgroup.Open(t.Context(), cgroup.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	group, err := root.NewGroup("delegated", cgroup.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	etc := t.TempDir()
	for file, text := range map[string]string{"subuid": subids, "subgid": subids, "passwd": users} {
		if err := os.WriteFile(filepath.Join(etc, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	self := filepath.Join(dir, "toolhost")
	copyFile(t, testBinary(t), self)
	cmd := exec.Command(self, append([]string{asUser, etc}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Dir = &out, &errs, dir
	cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "SECRET=" + canary}
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	begin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := group.Start(cmd.SysProcAttr, cmd.Start); err != nil {
		t.Fatal(err)
	}
	give(t, cmd.Process.Pid)
	_ = begin.Close()
	_ = cmd.Wait()
	for _, err := range []error{group.Kill(), group.WaitEmpty(t.Context())} {
		if err != nil {
			t.Error(err)
		}
	}
	removeBelow(t, group.Path())
	_ = group.Remove()
	return out.Bytes(), errs.Bytes(), cmd.ProcessState.ExitCode()
}

// delegate gives the user the cgroups of a process.
func delegate(t *testing.T, pid int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if !strings.HasSuffix(f[2], "delegated") {
			continue
		}
		for _, mount := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/" + f[1]} {
			_ = filepath.WalkDir(mount+f[2], func(path string, _ fs.DirEntry, err error) error {
				if err == nil {
					_ = os.Chown(path, someone, someone)
				}
				return nil
			})
		}
	}
}

// removeBelow removes what the user's own supervisor has left of its place.
func removeBelow(t *testing.T, dir string) {
	t.Helper()
	name := filepath.Base(filepath.Dir(dir)) + "/" + filepath.Base(dir)
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/", "/sys/fs/cgroup/*/*/", "/sys/fs/cgroup/*/*/*/"} {
		found, _ := filepath.Glob(pattern + name)
		for _, top := range found {
			var dirs []string
			_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.IsDir() && path != top {
					dirs = append(dirs, path)
				}
				return nil
			})
			for i := range dirs {
				_ = os.Remove(dirs[len(dirs)-1-i])
			}
		}
	}
}

// becomeUser plays the child: it shows itself other users, waits for its
// cgroups, becomes the user and is toolhost from then on.
func becomeUser(etc string, args []string) {
	runtime.LockOSThread()
	check := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, "becomeUser:", err)
			os.Exit(99)
		}
	}
	check(syscall.Unshare(syscall.CLONE_NEWNS))
	check(syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""))
	for _, file := range []string{"subuid", "subgid", "passwd"} {
		check(syscall.Mount(filepath.Join(etc, file), "/etc/"+file, "", syscall.MS_BIND, ""))
	}
	_, _ = os.Stdin.Read(make([]byte, 1))
	check(syscall.Setgroups([]int{}))
	check(syscall.Setgid(someone))
	check(syscall.Setuid(someone))
	check(syscall.Exec("/proc/self/exe", append([]string{"toolhost", asToolhost}, args...), os.Environ()))
}

func userDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "toolhost-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chown(dir, someone, someone); err != nil {
		t.Fatal(err)
	}
	return dir
}

func needRange(t *testing.T) {
	t.Helper()
	for _, need := range []string{"newuidmap", "newgidmap"} {
		if _, err := exec.LookPath(need); err != nil && os.Getenv("TOOLHOST_VM") != "" {
			t.Skip("no " + need + " in the VM")
		}
	}
	for _, file := range []string{"/etc/subuid", "/etc/subgid"} {
		if _, err := os.Stat(file); err != nil {
			t.Skip("no " + file + " to cover: install uidmap")
		}
	}
}

func TestNothingEscapesAnUnprivilegedHost(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("its probes are in other processes, which the race detector does not see")
	}
	needRange(t)
	dir := userDir(t)
	bait, err := escape.LayBait(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer bait.Close()
	probe := filepath.Join(dir, "toolhost")
	expect := bait.Expect
	expect.Sandboxed, expect.Canary, expect.UID, expect.GID = true, canary, 1000, 1000
	expect.Bound = []string{"/.toolhost", "/run", "/run/toolhost", probe}
	args := append([]string{"exec", "--quiet", "--timeout", "10m", "--pids", "256", "--", probe, asProbe}, expect.Args()...)
	stdout, stderr, code := asSomeone(t, dir, subordinate, args...)
	if code != 0 {
		t.Fatalf("exit status %d: %s", code, stderr)
	}
	facts, escaped, err := escape.Judge(bytes.NewReader(stdout), escape.Names()...)
	if err != nil {
		t.Fatal(err)
	}
	scoped := receipt(t).LandlockABI >= 6
	for _, fact := range escaped {
		if scoped || !signalsAdapter(fact) {
			t.Errorf("escaped: %+v", fact)
		}
	}
	t.Logf("%d facts, %d escaped", facts, len(escaped))
}

// Bound paths of an unprivileged host act as its user; so does everything where
// it has no other users, but then only if that is allowed.
func TestSharedUser(t *testing.T) {
	t.Parallel()
	needRange(t)
	dir := userDir(t)
	project := filepath.Join(dir, "project")
	if err := errors.Join(os.Mkdir(project, 0o755), os.Chown(project, someone, someone), os.MkdirAll(dir+"/.config/toolhost", 0o755), os.MkdirAll(dir+"/.local/state/toolhost", 0o755)); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := asSomeone(t, dir, subordinate, "exec", "--write", "project", "--", "touch", "project/made"); code != 0 {
		t.Fatalf("exit status %d: %s", code, stderr)
	}
	var st syscall.Stat_t
	if err := syscall.Stat(filepath.Join(project, "made"), &st); err != nil || st.Uid != someone || st.Gid != someone {
		t.Errorf("made by %d:%d, %v", st.Uid, st.Gid, err)
	}
	_, stderr, code := asSomeone(t, dir, subordinate, "exec", "--write", ".", "--", "true")
	if code != exit.Usage || !strings.Contains(string(stderr), "toolhost's own") {
		t.Errorf("a grant of the store: exit status %d: %s", code, stderr)
	}
	_, stderr, code = asSomeone(t, dir, "", "exec", "--", "true")
	if code != exit.Host || !strings.Contains(string(stderr), "grants no ids to") || !strings.Contains(string(stderr), "sharedUid") {
		t.Errorf("without subordinate ids: exit status %d: %s", code, stderr)
	}
	stdout, stderr, code := asSomeone(t, dir, "", "exec", "--json", "--allow", "sharedUid", "--", "true")
	if code != 0 || !strings.Contains(string(stdout), `"degraded":[{"feature":"sharedUid"`) {
		t.Errorf("with sharedUid allowed: exit status %d: %s%s", code, stdout, stderr)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := binaries.Write(to, content); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(to, someone, someone); err != nil {
		t.Fatal(err)
	}
}
