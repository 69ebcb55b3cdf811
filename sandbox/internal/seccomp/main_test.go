package seccomp_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/sandbox/internal/seccomp"
)

// The test binary plays the launcher, and some of the programs that run below it.
const (
	roleVar    = "SECCOMP_TEST_ROLE"
	nextVar    = "SECCOMP_TEST_NEXT" // the role of the program that the launcher executes
	profileVar = "SECCOMP_TEST_PROFILE"
)

var roles = map[string]func() error{
	"launch": launch,
	"probe":  probe,
	"x32":    func() error { _, _, errno := syscall.RawSyscall(syscall.SYS_GETPID|1<<30, 0, 0, 0); return errno },
	"tool":   tool,
	"child":  func() error { _, err := fmt.Println("child"); return err },
}

func TestMain(m *testing.M) {
	role := os.Getenv(roleVar)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := roles[role](); err != nil {
		fmt.Fprintln(os.Stderr, role+":", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// launch does what the launcher does: it installs the filter on one thread and executes its arguments from there.
func launch() error {
	profile, err := strconv.Atoi(os.Getenv(profileVar))
	if err != nil {
		return err
	}
	os.Setenv(roleVar, os.Getenv(nextVar))
	// Who is killed by the filter dumps core.
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return err
	}
	runtime.LockOSThread()
	if err := install(seccomp.Filter(seccomp.Profile(profile))); err != nil {
		return fmt.Errorf("cannot install the filter: %w", err)
	}
	return syscall.Exec(os.Args[1], os.Args[1:], os.Environ())
}

// install filters the calling thread.
func install(filter []unix.SockFilter) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(filter)
	if errno != 0 {
		return errno
	}
	return nil
}

// under is a command that runs argv, in the given role if it is the test binary, below the filter of profile.
func under(t *testing.T, profile seccomp.Profile, role string, argv ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(wait.Context(t), self(t), argv...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), roleVar+"=launch", nextVar+"="+role, profileVar+"="+strconv.Itoa(int(profile)))
	return cmd
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// eachProfile runs a test for each profile.
func eachProfile(t *testing.T, test func(t *testing.T, profile seccomp.Profile)) {
	for _, profile := range []seccomp.Profile{seccomp.Default, seccomp.Strict} {
		t.Run(profileName(profile), func(t *testing.T) { test(t, profile) })
	}
}

func profileName(profile seccomp.Profile) string {
	if profile == seccomp.Strict {
		return "strict"
	}
	return "default"
}
