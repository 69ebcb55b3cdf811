package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/client"
	"github.com/toolhost/toolhost/internal/access"
	"github.com/toolhost/toolhost/internal/access/tokens"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// What one may have is a matter of one: each refusal names the quota and its value, and
// the other goes on.
func TestQuotasOfAnIdentity(t *testing.T) {
	w := newWorld(t, "access:\n  bound: {quota: {memory: 160MiB, cpu: 50%, record: 300KiB}}\n")
	w.Listen = "127.0.0.1:0"
	d := w.command().start()
	d.waitReady()
	store := tokens.Open(w.State)
	as := func(name string) *world {
		secret, _, err := store.Create(tokens.Spec{Name: name, Roles: []access.Role{access.Call}, By: "uid 0"})
		if err != nil {
			t.Fatal(err)
		}
		own := *w
		if own.client, err = client.New(client.Options{URL: d.tcp(), Token: secret}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(own.client.Close)
		return &own
	}
	bound, free := as("bound"), as("free")

	first := bound.begin()
	greedy := bound.run(first, api.Call{ID: "greedy", Tool: "work", Arguments: arguments(t, workArgs{Memory: 200})})
	if r := greedy.result; greedy.err != nil || r.Status != api.StatusOOM || r.Reason != api.ReasonShareMemory || !strings.Contains(r.Message, "quota: memory") {
		t.Errorf("%v %+v", greedy.err, r)
	}
	free.mustRun(free.begin(), "work", workArgs{Memory: 200})

	bound.mustRun(first, "work", workArgs{Text: strings.Repeat("x", 100<<10), Repeat: 4})
	full := bound.run(first, api.Call{ID: "more", Tool: "work"})
	if r := full.result; full.err != nil || r.Status != api.StatusOverloaded || r.Reason != api.ReasonQuota ||
		!strings.Contains(r.Message, "its quota is 307200 (access: quota: record)") || !r.Retry.Retryable {
		t.Errorf("%v %+v", full.err, r)
	}
	_, err := bound.client.Begin(wait.Context(t), api.TurnSpec{})
	if refused, ok := errors.AsType[*api.Error](err); !ok || refused.Status != 429 || refused.Code != "quota_exceeded" || !strings.Contains(refused.Message, "quota: record") {
		t.Errorf("a turn beside it: %v", err)
	}
	if err := bound.client.End(wait.Context(t), first); err != nil {
		t.Fatal(err)
	}
	second := bound.begin()
	bound.mustRun(second, "work", workArgs{Text: "fits"})
	wait.Until(t, "the first turn makes room", func() bool {
		list, err := bound.client.PastTurns(wait.Context(t), api.Filter{})
		return err == nil && len(list) == 1
	})

	// Its cgroup is there while a call is, and no longer.
	file := filepath.Join(w.dir, "over")
	running := bound.launch(bound.begin(), "work", workArgs{For: file})
	if n := len(shares(t)); n == 0 {
		t.Error("there is no cgroup of its own")
	}
	w.letGo(file)
	if o := w.outcome(running); o.err != nil || !o.result.OK() {
		t.Errorf("%+v", o)
	}
	wait.Until(t, "the cgroup is gone", func() bool { return len(shares(t)) == 0 })
}

// shares are the directories of the identity's calls, wherever this machine has them.
func shares(t *testing.T) (found []string) {
	t.Helper()
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, e os.DirEntry, err error) error {
		if err == nil && e.IsDir() && strings.HasPrefix(e.Name(), "s-token_bound-") {
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// A quota that is changed while calls run leaves those alone, and holds for what begins
// then: more slots at once, fewer turns, and less memory than a running call has.
func TestAQuotaChangesWhileCallsRun(t *testing.T) {
	t.Parallel()
	before := "admission: {wait: 10m}\ntimeouts: {tool_call: {default: 10m}}\naccess:\n  bound: {quota: {turns: 2, running: 1, waiting: 1, memory: 700MiB}}\n"
	w := newWorld(t, before)
	w.Listen = "127.0.0.1:0"
	d := w.daemon()
	bound := bearerOf(t, d, "bound")
	file := filepath.Join(w.dir, "over")
	runs, second := bound.begin(), bound.begin()
	first := bound.launch(runs, "work", workArgs{For: file, Memory: 150})
	ofOne := w.left() // processes
	if _, err := bound.client.Begin(wait.Context(t), api.TurnSpec{}); err == nil || !strings.Contains(err.Error(), "may have 2 at once (access: quota: turns): end some, and begin it then") {
		t.Errorf("a turn beyond the quota: %v", err)
	}
	w.configure(strings.NewReplacer("turns: 2", "turns: 1", "running: 1", "running: 2", "700MiB", "100MiB").Replace(before))
	d.signal(syscall.SIGHUP)
	d.waitLog("configuration loaded")
	if err := bound.client.End(wait.Context(t), second); err != nil {
		t.Fatal(err)
	}
	if _, err := bound.client.Begin(wait.Context(t), api.TurnSpec{}); err == nil || !strings.Contains(err.Error(), "may have 1 at once (access: quota: turns): end some, and begin it then") {
		t.Errorf("a turn beyond the new quota: %v", err)
	}
	w.letGo(file)
	if o := bound.outcome(first); o.err != nil || !o.result.OK() {
		t.Errorf("the call that ran: %v %+v", o.err, o.result)
	}
	if r := bound.run(runs, api.Call{ID: "much", Tool: "work", Arguments: arguments(t, workArgs{Memory: 150})}).result; r == nil || r.Status != api.StatusOOM || r.Reason != api.ReasonShareMemory {
		t.Errorf("what has more than the new quota: %+v", r)
	}
	again := filepath.Join(w.dir, "again")
	batch := []api.Call{{ID: "a", Tool: "work", Arguments: arguments(t, workArgs{For: again})}, {ID: "b", Tool: "work", Arguments: arguments(t, workArgs{For: again, Text: "x"})}}
	done := make(chan error, 1)
	go func() {
		results, err := bound.client.Run(wait.Context(t), runs, batch)
		for _, r := range results {
			if !r.OK() {
				err = errors.Join(err, errors.New(r.Message))
			}
		}
		done <- err
	}()
	wait.Until(t, "two calls run at once", func() bool { return w.left() >= 2*ofOne })
	w.letGo(again)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
