package escape

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

const roleVar = "ESCAPE_TEST_ROLE"

// TestMain lets the test binary play the hostile tool.
func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case "":
		os.Exit(m.Run())
	case "tool":
		os.Exit(Main(os.Args[1:], os.Stdout))
	default:
		panic("bug: no such role: " + os.Getenv(roleVar))
	}
}

// play runs the test binary as the tool, with no sandbox around it.
func play(t *testing.T, env Expect, names ...string) []byte {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(wait.Context(t), self, env.Args(names...)...)
	cmd.Env = []string{roleVar + "=tool", "SECRET=" + string(env.Canary)}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot play the tool: %v\n%s", err, out)
	}
	return out
}

// TestNoSandbox is the negative control: where nothing holds them, the probes say so.
func TestNoSandbox(t *testing.T) {
	if status := fields("/proc/self/status"); status["Seccomp"] != "0" || status["NoNewPrivs"] != "0" {
		t.Skip("needs a machine without a sandbox: seccomp or no_new_privs holds this test already")
	}
	bait, err := LayBait(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := bait.Close(); err != nil {
			t.Error(err)
		}
	}()
	before := machine(t)
	begun := time.Now()
	out := play(t, bait.Expect)
	t.Logf("took %v", time.Since(begun).Round(time.Millisecond))
	if after := machine(t); after != before {
		t.Errorf("the probes changed the machine:\nbefore %s\nafter %s", before, after)
	}
	if file := os.Getenv("ESCAPE_TEST_OUT"); file != "" {
		if err := os.WriteFile(file, out, 0o600); err != nil {
			t.Error(err)
		}
	}
	facts, escaped, err := Judge(bytes.NewReader(out), Names()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d facts escaped", len(escaped), facts)
	want := 40
	if os.Geteuid() == 0 {
		want = 60
	}
	if len(escaped) < want {
		t.Errorf("%d escapes without a sandbox, want at least %d", len(escaped), want)
	}
	for _, name := range found(bait.Expect) {
		if !slices.ContainsFunc(escaped, func(f Fact) bool { return f.Probe+": "+f.Case == name }) {
			t.Errorf("did not find what is there: %s", name)
		}
	}
}

// found are facts that say escaped whoever asks, when there is no sandbox.
func found(env Expect) []string {
	return []string{
		"identity: threads whose NoNewPrivs is not 1", "identity: threads whose Seccomp is not 2",
		"namespaces: own user", "namespaces: own pid", "namespaces: own net", "namespaces: own mnt", "namespaces: own cgroup", "namespaces: hostname",
		"syscalls: mount", "syscalls: ptrace seize", "syscalls: TIOCSTI with bit 32", "syscalls: clock_settime",
		"paths: absent " + env.Absent[0], "paths: unexpected in /dev", "paths: unexpected in /", "paths: read /sys",
		"mounts: mount /", "mounts: root is read-only",
		"processes: strangers in /proc", "processes: canary in /proc", "processes: canary in the environment", "processes: prlimit of the parent",
		"network: abstract socket", "network: path socket", "network: path socket is visible", "network: host's port at 127.0.0.1",
		"ipc: host's shared memory", "ipc: host's semaphores", "ipc: host's messages", "ipc: host's message queue",
	}
}

// machine is what a careless probe would have changed.
func machine(t *testing.T) string {
	t.Helper()
	var state strings.Builder
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	state.WriteString(host + "\n")
	for _, path := range []string{"/proc/self/mountinfo", "/proc/self/limits", "/proc/sys/kernel/core_pattern", "/proc/swaps", "/proc/self/oom_score_adj"} {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		state.Write(b)
	}
	b, err := os.ReadFile("/proc/net/dev")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		name, _, _ := strings.Cut(line, ":")
		state.WriteString(name)
	}
	return state.String()
}

func TestRunUnknown(t *testing.T) {
	if err := Run("nothing", Expect{}, &bytes.Buffer{}); err == nil {
		t.Error("a group that is not there ran")
	}
	var out bytes.Buffer
	if status := Main(nil, &out); status == 0 {
		t.Error("Main ran without knowing what to expect")
	}
	if _, _, err := Judge(&out); err == nil {
		t.Error("Judge took an error message for a fact")
	}
}

func TestScript(t *testing.T) {
	a := newArena()
	defer a.free()
	// A struct sock_fprog of one instruction: return action.
	filter := func(action uint64) []step {
		program := a.words(1, uint64(a.words(0x06|action<<32)))
		return []step{call(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0).orEnd(), call(unix.SYS_SECCOMP, 1, 0, program).orEnd(), call(unix.SYS_GETPID)}
	}
	tests := []struct {
		name  string
		steps []step
		want  string
	}{
		{"success", []step{call(unix.SYS_GETPID)}, ""},
		{"error", []step{call(unix.SYS_CLOSE, minus(1))}, "EBADF"},
		{"death", []step{call(unix.SYS_GETPID), call(unix.SYS_GETPID).with(1, 0), call(unix.SYS_PRCTL, unix.PR_SET_SECCOMP, 1, 0, 0, 0), call(unix.SYS_GETPPID)}, "SIGKILL"},
		{"filter that kills", filter(unix.SECCOMP_RET_KILL_PROCESS), "SIGSYS"},
		{"filter that traps", filter(unix.SECCOMP_RET_TRAP), "SIGSYS"},
		{"end", []step{call(unix.SYS_CLOSE, minus(1)).orEnd(), call(unix.SYS_GETPID)}, "EBADF"},
		{"result of an earlier step", []step{call(unix.SYS_OPENAT, 0, a.str("/"), unix.O_RDONLY).orEnd(), call(unix.SYS_FCHDIR, minus(1)).with(1, 0)}, ""},
	}
	for _, tt := range tests {
		if got := attempt(tt.steps...).name(); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestAwaitEndsWhatBlocks(t *testing.T) {
	results := newResults()
	defer results.free()
	pid, errno := fork(uintptr(unix.SIGCHLD), []step{call(unix.SYS_PPOLL, 0, 0, 0, 0)}, results.slots, &results.action)
	if errno != 0 {
		t.Fatal(errno)
	}
	if status := await(int(pid), time.Millisecond); !status.Signaled() || status.Signal() != unix.SIGKILL {
		t.Errorf("status %#x, want killed", status)
	}
}

func TestParseMount(t *testing.T) {
	m, ok := parseMount(`36 35 98:0 /mnt1 /mnt\0402 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`)
	want := mountPoint{"/mnt1", "/mnt 2", "rw,noatime", "master:1", "ext3", "/dev/root"}
	if !ok || m != want {
		t.Errorf("got %+v, want %+v", m, want)
	}
	if _, ok := parseMount("garbage"); ok {
		t.Error("garbage is a mount")
	}
}
