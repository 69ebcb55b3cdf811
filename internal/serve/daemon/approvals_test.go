package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// cannotWrite has every write of the process to a file fail beyond its first byte, as on a
// full disk, until the function that it gives is called.
func (p *process) cannotWrite() (restore func()) {
	p.t.Helper()
	limit := func(now *unix.Rlimit) (was unix.Rlimit) {
		if err := unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_FSIZE, now, &was); err != nil {
			p.t.Fatal(err)
		}
		return was
	}
	was := limit(nil)
	limit(&unix.Rlimit{Cur: 1, Max: was.Max})
	return func() { limit(&was) }
}

// approveAlways has one call of a tool approved for all of the identity's.
func (w *world) approveAlways(tool string) {
	w.t.Helper()
	begun, err := w.client.Begin(wait.Context(w.t), api.TurnSpec{})
	if err != nil {
		w.t.Fatal(err)
	}
	done := make(chan outcome, 1)
	go func() {
		done <- w.run(begun.TurnID, api.Call{ID: "c", Tool: tool, Arguments: arguments(w.t, map[string]string{"text": "x"})})
	}()
	var asked []api.Interaction
	wait.Until(w.t, "a question", func() bool {
		asked, err = w.client.Interactions(wait.Context(w.t))
		return err != nil || len(asked) > 0
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.client.Answer(wait.Context(w.t), asked[0].ID, api.Answer{Approve: true, Always: true, For: api.ForIdentity}); err != nil {
		w.t.Fatal(err)
	}
	if o := <-done; o.err != nil || !o.result.OK() {
		w.t.Fatalf("%v: %+v", o.err, o.result)
	}
}

func (w *world) approvals() []api.Approval {
	w.t.Helper()
	list, err := w.client.Approvals(wait.Context(w.t))
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

// A revocation on a full disk counts for the next daemon, too, however this one ends; the
// other approvals are kept again once there is room.
func TestRevokedOnAFullDisk(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "  one: {command: [echo, \"{text}\"], mode: ask}\n  other: {command: [echo, \"{text}\"], mode: ask}\n")
	d := w.daemon()
	w.approveAlways("one")
	w.approveAlways("other")
	file := filepath.Join(w.State, approvalsName)
	restore := d.cannotWrite()
	if err := w.client.RevokeApproval(wait.Context(t), w.approvals()[0].ID); err != nil {
		t.Errorf("revoked without room: %v", err)
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the next daemon finds what was revoked: %v", err)
	}
	restore()
	wait.Until(t, "the other one is kept again", func() bool {
		_, err := os.Stat(file)
		return err == nil
	})
	d.signal(syscall.SIGKILL)
	d.code()
	w.daemon()
	if list := w.approvals(); len(list) != 1 || list[0].Tool != "other" {
		t.Errorf("the next daemon has %+v", list)
	}
}

// What is approved for more than one call is the program that was there: another one in its
// place is asked about again.
func TestAnApprovalIsOfTheProgram(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	script := filepath.Join(w.dir, "tool")
	put := func(text string) {
		t.Helper()
		made := script + ".new"
		if err := errors.Join(os.WriteFile(made, []byte("#!/bin/sh\necho "+text+"\n"), 0o755), os.Rename(made, script)); err != nil {
			t.Fatal(err)
		}
	}
	put("old")
	w.configure(fmt.Sprintf("  script: {command: [%s, \"{text}\"], mode: ask}\n", script))
	w.daemon()
	w.approveAlways("script")
	call := api.Call{ID: "c", Tool: "script", Arguments: arguments(t, map[string]string{"text": "x"})}
	if o := w.run(w.begin(), call); o.err != nil || !o.result.OK() {
		t.Errorf("what was approved: %v, %+v", o.err, o.result)
	}
	put("new")
	if o := w.run(w.begin(), call); o.err != nil || o.result.Status != api.StatusDenied {
		t.Errorf("another program: %v, %+v", o.err, o.result)
	}
	put("old")
	if o := w.run(w.begin(), call); o.err != nil || !o.result.OK() {
		t.Errorf("what was approved again: %v, %+v", o.err, o.result)
	}
}
