package supervisor_test

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

// A host that has no descriptors left says so, and how to get some, until a call
// can be made again.
func TestNotReadyWithoutDescriptors(t *testing.T) {
	host := newHost(t, nothingWaits)
	one := request("echo", `{"text":"x"}`)
	wantStatus(t, call(t, host, one), api.StatusOK)
	if err := host.Ready(); err != nil {
		t.Fatal(err)
	}
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	for _, spare := range []int{2, 10, 20} {
		fds := descriptors(t, os.Getpid())
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: uint64(fds + spare), Max: was.Max}); err != nil {
			t.Fatal(err)
		}
		refused := host.Call(t.Context(), one)
		err := host.Ready()
		if e := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); e != nil {
			t.Fatal(e)
		}
		if !refused.OK() && (err == nil || !strings.Contains(err.Error(), "raise the limit of open files")) {
			t.Errorf("%d spare descriptors: %s %s, but ready: %v", spare, refused.Status, refused.Message, err)
		}
		if refused.OK() && spare < 5 {
			t.Errorf("%d spare descriptors: %s", spare, refused.Status)
		}
		wait.Until(t, "the host is ready again", func() bool { return host.Ready() == nil })
		wantStatus(t, call(t, host, one), api.StatusOK)
	}
}

// What one call asks for in vain does not make the host unready.
func TestReadyAfterACallsOwnFailure(t *testing.T) {
	host := newHost(t, nothingWaits)
	one := request("echo", `{"text":"x"}`)
	one.Tool.Path = "/etc/passwd"
	if result := host.Call(t.Context(), one); result.OK() {
		t.Fatal("a call of what is not a program")
	}
	if err := host.Ready(); err != nil {
		t.Error(err)
	}
}

// Nor does what one call is granted and cannot be shown: another tool, or its owner, has done
// something to the folder that it lies in.
func TestReadyAfterAGrantInVain(t *testing.T) {
	if os.Getenv("TOOLHOST_VM") != "" {
		t.Skip("needs a file system with id-mapped mounts for the grants, which the VM does not have")
	}
	host := newHost(t, nothingWaits)
	for name, spoil := range map[string]func(dir string) error{
		"a link": func(dir string) error {
			return errors.Join(os.Rename(dir+"/sub", dir+"/moved"), os.Symlink("/usr", dir+"/sub"))
		},
		"closed": func(dir string) error { return os.Chmod(dir+"/sub", 0) },
		"gone":   func(dir string) error { return os.RemoveAll(dir + "/sub") },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.MkdirAll(dir+"/sub/deep", 0o755); err != nil {
				t.Fatal(err)
			}
			one := request("echo", `{"text":"x"}`)
			one.Sandbox = &sandbox.Policy{Read: []string{dir, dir + "/sub/deep"}}
			if os.Geteuid() != 0 {
				one.Sandbox.Allow = []string{sandbox.SharedUID}
			}
			p, err := host.Prepare(t.Context(), one)
			if err != nil {
				t.Fatal(err)
			}
			if err := spoil(dir); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Chmod(dir+"/sub", 0o755) }) // or others than root could not remove it
			result := p.Start(t.Context(), supervisor.Own{}).Result()
			if result.Status != api.StatusStartFailed || result.Reason != api.ReasonPolicy || result.Retry.Retryable || !strings.Contains(result.Message, "cannot show "+dir+"/sub/deep") {
				t.Errorf("%s (%s), retry %+v: %s", result.Status, result.Reason, result.Retry, result.Message)
			}
			if err := host.Ready(); err != nil {
				t.Error(err)
			}
		})
	}
}
