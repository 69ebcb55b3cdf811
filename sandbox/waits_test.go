package sandbox

import (
	"errors"
	"testing"
	"time"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// waiting makes a sandbox that waits, and the start of a role in it.
func (w *world) waiting(p *Plan, role string, args []string, change func(*Spec)) (c *call, begin Spec) {
	w.t.Helper()
	c = w.start(p, "", nil, func(s *Spec) {
		if begin = *s; change != nil {
			change(s)
		}
		s.Path, s.Args, s.Env, s.Timer, s.Waits = "", nil, nil, 0, true
	})
	must(w.t, c.err)
	begin.Args, begin.Env = append([]string{"tool"}, args...), []string{roleVar + "=" + role}
	return c, begin
}

// A sandbox can be made before it is known what is to run in it, and is then as any other.
func TestASandboxWaitsForItsProgram(t *testing.T) {
	w := enter(t)
	plan := w.plan(Policy{}, Task{})
	for _, args := range [][]string{{"env"}, {"id", "cwd", "fds", "list:/", "mountflags:/tmp", "initargs"}} {
		c, begin := w.waiting(plan, "do", args, nil)
		if closed(c.ready) {
			t.Fatalf("it has started without a program: %v", c.failure)
		}
		must(t, c.Begin(begin))
		must(t, c.Started(wait.Context(t)))
		own := w.run(plan, "do", args...)
		if got, want := c.output(), own.output(); got != want || want == "" {
			t.Errorf("%q, want %q", got, want)
		}
	}
	c, begin := w.waiting(plan, "tree", nil, nil)
	begin.Timer = time.Millisecond
	must(t, c.Begin(begin))
	c.waitGone()
	c, begin = w.waiting(plan, "tree", nil, nil)
	begin.Path = "/nosuch"
	must(t, c.Begin(begin))
	err := c.Started(wait.Context(t))
	if setup, ok := errors.AsType[*SetupError](err); !ok || !setup.Executing() {
		t.Errorf("error %v, want that of executing a program that does not exist", err)
	}
}

// One that waits ends with its host, its lease or its launcher; no program comes into it
// afterwards.
func TestASandboxThatWaitsEnds(t *testing.T) {
	w := enter(t)
	plan := w.plan(Policy{}, Task{})
	lease, err := NewLease("one")
	must(t, err)
	must(t, lease.Renew(time.Hour))
	defer lease.Close()
	for name, end := range map[string]func(*call) error{
		"host":     func(c *call) error { return c.control.Close() },
		"launcher": func(c *call) error { return c.Kill() },
		"lease":    func(*call) error { return lease.Renew(0) },
	} {
		t.Run(name, func(t *testing.T) {
			c, begin := w.waiting(plan, "tree", nil, func(s *Spec) { s.Lease = lease })
			must(t, end(c))
			c.waitGone()
			if err := c.Begin(begin); err == nil {
				t.Error("a program was given to one that has ended")
			}
		})
	}
}

// The key tells sandboxes apart, and not what runs in them.
func TestKeyOfASpec(t *testing.T) {
	w := enter(t)
	plan := w.plan(Policy{}, Task{})
	one := w.spec(plan, "echo", []string{"a"}, nil, nil)
	same := w.spec(w.plan(Policy{}, Task{}), "tree", []string{"b"}, nil, nil)
	same.Path, same.Dir, same.Timer = "/other", "/tmp", 0
	if one.Key() != same.Key() {
		t.Error("the program is part of the key")
	}
	dir := t.TempDir()
	for name, other := range map[string]*Plan{
		"grant":   w.plan(Policy{Read: []string{dir}}, Task{}),
		"write":   w.plan(Policy{Write: []string{dir}}, Task{}),
		"strict":  w.plan(Policy{Strict: true}, Task{}),
		"memory":  w.plan(Policy{}, Task{MemoryBytes: 1 << 28}),
		"secret":  w.plan(Policy{}, Task{Secrets: []Secret{{Name: "s", Data: []byte("x")}}}),
		"program": w.plan(Policy{}, Task{Programs: []Program{{Source: "/etc/hostname", Target: "/more"}}}),
	} {
		if s := w.spec(other, "echo", nil, nil, nil); s.Key() == one.Key() {
			t.Errorf("%s is not part of the key", name)
		}
	}
	leased := one
	leased.Lease = &Lease{name: "l"}
	if leased.Key() == one.Key() {
		t.Error("the lease is not part of the key")
	}
}
