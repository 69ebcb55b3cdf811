package shield

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

const roleVar = "APART_TEST_ROLE"

// secretVar is in the parent's environment only.
const secretVar = "APART_TEST_SECRET"

// TestMain lets the test binary play a parent and the child that it starts.
func TestMain(m *testing.M) {
	role := os.Getenv(roleVar)
	switch role {
	case "":
		goleak.VerifyTestMain(m)
		return
	case "child":
		attack(os.Getppid())
		syscall.Exit(0) // not os.Exit: the race detector's takes a second
	}
	if err := parent(role); err != nil {
		fmt.Println("parent:", err)
		os.Exit(1)
	}
	syscall.Exit(0)
}

// parent starts a child apart, or an ordinary one as the negative control. The
// role is a list of words: apart or ordinary, nnp (no new privileges), main
// (from the main thread).
func parent(role string) error {
	words := strings.Fields(role)
	if slices.Contains(words, "nnp") {
		return noNewPrivileges(words)
	}
	start := os.StartProcess
	if slices.Contains(words, "apart") {
		start = Start
	}
	child, err := start("/proc/self/exe", []string{"child"}, &os.ProcAttr{
		Env: []string{roleVar + "=child"}, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys: &syscall.SysProcAttr{Setpgid: true}, // or it would signal itself with its parent's group
	})
	if err != nil {
		return err
	}
	_, err = child.Wait()
	return err
}

// noNewPrivileges executes the parent again, for a program without rights to
// Landlock may use it only so. Only this thread remains.
func noNewPrivileges(words []string) error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	words = slices.DeleteFunc(words, func(w string) bool { return w == "nnp" })
	return syscall.Exec("/proc/self/exe", []string{"parent"}, []string{roleVar + "=" + strings.Join(words, " "), secretVar + "=secret"})
}

// attack says what could be done to a process.
func attack(pid int) {
	proc := "/proc/" + strconv.Itoa(pid)
	text, err := os.ReadFile(proc + "/environ")
	fmt.Println("environ", err == nil && strings.Contains(string(text), secretVar))
	mem, err := os.OpenFile(proc+"/mem", os.O_RDWR, 0)
	fmt.Println("mem", err == nil)
	if err == nil {
		_ = mem.Close()
	}
	_, err = os.Readlink(proc + "/fd/0")
	fmt.Println("fd", err == nil)
	fmt.Println("ptrace", unix.PtraceSeize(pid) == nil)
	fmt.Println("signal", syscall.Kill(pid, 0) == nil)
	fmt.Println("group", syscall.Kill(-pid, 0) == nil)
}

func scopes() bool {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	return errno == 0 && abi >= 6
}

// deeds are what a child could do to such a parent.
func deeds(t *testing.T, role string, uid int) map[string]bool {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{roleVar + "=" + role, secretVar + "=secret"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if uid != os.Geteuid() {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd.Stdout, cmd.Stderr = w, w
	err = cmd.Start()
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(r)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	could := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		could[name] = value == "true"
	}
	if len(could) != 6 {
		t.Fatalf("%s says %q", role, text)
	}
	return could
}

const nobody = 65534

func users() []int {
	if os.Geteuid() == 0 {
		return []int{0, nobody}
	}
	return []int{os.Geteuid()}
}

// The negative control: what an ordinary child can do to its parent.
func TestAnOrdinaryChildReachesItsParent(t *testing.T) {
	for _, uid := range users() {
		for name, could := range deeds(t, "ordinary", uid) {
			// Yama and others may forbid tracing, and with it mem, to anyone.
			if !could && (name == "environ" || name == "signal" || name == "group") {
				t.Errorf("user %d: an ordinary child could not: %s", uid, name)
			}
		}
	}
}

func TestAChildApartDoesNotReachItsParent(t *testing.T) {
	for _, uid := range users() {
		for name, could := range deeds(t, "apart nnp", uid) {
			// Between root and root stands Landlock only, and it lets whoever has
			// CAP_PERFMON read (Linux 6.13, mm_access).
			privileged := uid == 0 && (!scopes() || name == "environ")
			unscoped := (name == "signal" || name == "group") && !scopes()
			if could && !privileged && !unscoped {
				t.Errorf("user %d: the child could: %s", uid, name)
			}
		}
	}
	if !scopes() {
		t.Skip("missing: Landlock scopes (ABI 6, Linux 6.12): signals were not tried")
	}
}

// Without a right to Landlock at least memory and files are out of reach.
func TestAChildApartWithoutLandlock(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("missing: root rights (to start another user's process)")
	}
	for name, could := range deeds(t, "apart", nobody) {
		if could && name != "signal" && name != "group" {
			t.Errorf("the child could: %s", name)
		}
	}
}

// A domain denies moves between folders unless it says otherwise.
func TestAChildApartMovesFiles(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(dir, path), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "a/file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	onOwnThread(func() {
		if err = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err == nil {
			scope()
			err = os.Rename(filepath.Join(dir, "a/file"), filepath.Join(dir, "b/file"))
		}
	})
	if err != nil {
		t.Error(err)
	}
}

// It is never the main thread that is restricted: whoever shares its Landlock
// domain may signal the whole process.
func TestNeverOnTheMainThread(t *testing.T) {
	for range 100 {
		onOwnThread(func() {
			if unix.Gettid() == unix.Getpid() {
				t.Error("on the main thread")
			}
		})
	}
}

func TestStartReturnsErrors(t *testing.T) {
	if os.Geteuid() != 0 { // Start makes this process one that can't be looked into
		t.Skip("missing: root rights (to be looked into afterwards)")
	}
	if p, err := Start("/nonexistent", []string{"x"}, &os.ProcAttr{}); err == nil || p != nil {
		t.Errorf("Start() = %v, %v", p, err)
	}
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
}

// TestAChildApartMounts: what no sandbox confines, a toolhost inside a tool say, may
// still make a sandbox of its own.
func TestAChildApartMounts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root mounts")
	}
	dir := t.TempDir()
	var err error
	onOwnThread(func() {
		if err = unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return
		}
		if err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
			return
		}
		scope()
		err = unix.Mount("none", dir, "tmpfs", 0, "")
	})
	if err != nil {
		t.Error(err)
	}
}
