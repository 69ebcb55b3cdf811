package seccomp_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/sandbox/internal/seccomp"
)

func TestCalls(t *testing.T) {
	eachProfile(t, func(t *testing.T, profile seccomp.Profile) {
		if out, err := under(t, profile, "probe", self(t)).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

func TestUnknownProfileIsStrict(t *testing.T) {
	if !slices.Equal(seccomp.Filter(-1), seccomp.Filter(seccomp.Strict)) {
		t.Error("an unknown profile does not get the strict filter")
	}
}

// programs are real programs to run below the filters. Each does many things and says "ok" as its last word.
var programs = []struct {
	name     string
	path     string // empty for the test binary
	script   string // in testdata
	needs    string // a program that the script runs
	optional bool   // may be missing where the tests run
}{
	{name: "go"},
	{name: "sh", path: "/bin/sh", script: "sh.sh"},
	{name: "bash", path: "bash", script: "bash.sh"},
	{name: "git", path: "/bin/sh", script: "git.sh", needs: "git"},
	{name: "python", path: "/usr/bin/python3", script: "python.py"},
	{name: "node", path: "node", script: "node.js", optional: true},
}

func TestPrograms(t *testing.T) {
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			eachProfile(t, func(t *testing.T, profile seccomp.Profile) {
				argv := []string{self(t)}
				if p.path != "" {
					argv = []string{find(t, p.path, p.optional), testdata(t, p.script), profileName(profile)}
				}
				if p.needs != "" {
					find(t, p.needs, p.optional)
				}
				out, err := under(t, profile, "tool", argv...).CombinedOutput()
				if err != nil || !strings.HasSuffix(string(out), "ok\n") {
					t.Errorf("%v\n%s", err, out)
				}
			})
		})
	}
}

// find returns a program's path.
func find(t *testing.T, program string, optional bool) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil && optional {
		t.Skipf("%s is not installed", program)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func testdata(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// tool does what tools written in Go do: goroutines, files, a server on loopback, children.
func tool() error {
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() { errs[i] = greet() })
	}
	wg.Wait()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVar+"=child")
	out, err := cmd.Output()
	if err == nil && string(out) != "child\n" {
		err = fmt.Errorf("child said %q", out)
	}
	if err := errors.Join(append(errs, err, os.WriteFile("file", out, 0o600))...); err != nil {
		return err
	}
	_, err = fmt.Println("ok")
	return err
}

// greet sends a word over loopback; Go's listeners speak MPTCP where the kernel has it.
func greet() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close()
	said := make(chan error, 1)
	go func() {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err == nil {
			_, err = io.WriteString(conn, "hello")
			err = errors.Join(err, conn.Close())
		}
		said <- err
	}()
	conn, err := listener.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	heard, err := io.ReadAll(conn)
	if string(heard) != "hello" {
		err = errors.Join(err, fmt.Errorf("heard %q", heard))
	}
	return errors.Join(err, <-said)
}
