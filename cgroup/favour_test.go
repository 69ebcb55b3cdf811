package cgroup

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// While groups start all together weigh more, unless the operator has said how much.
func TestStartsAreFavoured(t *testing.T) {
	r := openRoot(t, Options{})
	h := r.limited[ctrlCPU]
	if h == nil {
		t.Fatal("no cpu controller here")
	}
	weighs := func(weight int64) bool {
		w := r.layout.weight(weight)[0]
		text, err := h.tools.read(w.file)
		return err == nil && strings.TrimSpace(text) == w.value
	}
	start := func(name string) {
		t.Helper()
		g := newGroup(t, r, name, Limits{})
		cmd := exec.Command("true")
		cmd.SysProcAttr = &syscall.SysProcAttr{}
		if err := g.Start(cmd.SysProcAttr, func() error {
			if r.all.favour.never != weighs(30) || r.all.favour.never == weighs(startWeight) {
				t.Errorf("%s: another weight at its start", name)
			}
			return cmd.Start()
		}); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"first", "second"} {
		start(name)
		wait.Until(t, "the weight is itself again", func() bool { return weighs(toolsWeight) })
	}
	start("third")
	if err := r.Totals(Limits{CPUWeight: 30}); err != nil || !weighs(30) {
		t.Errorf("not the operator's weight, %v", err)
	}
	start("fourth")
	wait.Until(t, "the favour is over", func() bool {
		r.all.mu.Lock()
		defer r.all.mu.Unlock()
		return !r.all.favour.on
	})
	if !weighs(30) {
		t.Error("the end of a favour has changed the operator's weight")
	}
	if err := r.Totals(Limits{}); err != nil {
		t.Fatal(err)
	}
	start("fifth")
}
