package cgroup

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

const envRole = "TOOLHOST_CGROUP_TEST_ROLE"

// child is this test binary in another role.
type child struct {
	t     testing.TB
	cmd   *exec.Cmd
	lines *bufio.Scanner
	exit  chan error
}

func roleCommand(role string, args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), envRole+"="+role, "GOMAXPROCS=1")
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	return cmd
}

// spawn starts a role in a group (or, with g nil, beside us), to be killed
// after the test at the latest.
func spawn(t testing.TB, g *Group, role string, args ...string) *child {
	t.Helper()
	return spawnCommand(t, g, roleCommand(role, args...))
}

func spawnCommand(t testing.TB, g *Group, cmd *exec.Cmd) *child {
	t.Helper()
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = w
	if g == nil {
		err = cmd.Start()
	} else {
		err = g.Start(cmd.SysProcAttr, cmd.Start)
	}
	_ = w.Close()
	_ = out.SetReadDeadline(time.Now().Add(wait.Bound)) // descendants may hold the other end
	if err != nil {
		t.Fatal(err)
	}
	c := &child{t, cmd, bufio.NewScanner(out), make(chan error, 1)}
	go func() { c.exit <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		c.wait()
		_ = out.Close()
	})
	return c
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// line waits for the child's next line.
func (c *child) line() string {
	c.t.Helper()
	if !c.lines.Scan() {
		c.t.Fatalf("child %v said no more: %v", c.cmd.Env[len(c.cmd.Env)-2], c.lines.Err())
	}
	return c.lines.Text()
}

func (c *child) expect(want string) *child {
	c.t.Helper()
	if got := c.line(); !strings.HasPrefix(got, want) {
		c.t.Fatalf("child said %q, want %q", got, want)
	}
	return c
}

// wait returns how the child ended; it may be called again.
func (c *child) wait() error {
	err := <-c.exit
	c.exit <- err
	return err
}
