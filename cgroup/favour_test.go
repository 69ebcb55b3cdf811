package cgroup

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// While groups start all together weigh more, unless the operator has said how much.
func TestStartsAreFavoured(t *testing.T) {
	r := openRoot(t, Options{})
	h := r.limited[ctrlCPU]
	if h == nil {
		t.Fatal("no cpu controller here")
	}
	favoured := int64(boostWeight)
	if h.version != 1 {
		favoured = toolsWeight
	}
	weighs := func(weight int64) bool {
		w := r.layout.weight(weight)[0]
		text, err := h.tools.read(w.file)
		return err == nil && strings.TrimSpace(text) == w.value
	}
	start := func(name string) {
		t.Helper()
		g := newGroup(t, r, name, Limits{})
		cmd := exec.Command("/proc/self/exe", "-test.run=^$") // a machine need not have true
		cmd.SysProcAttr = &syscall.SysProcAttr{}
		if err := g.Start(cmd.SysProcAttr, func() error {
			if want := map[bool]int64{false: favoured, true: 30}[r.all.favour.never]; !weighs(want) {
				t.Errorf("%s: at its start the weight is not %d", name, want)
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
	if err := r.Totals(Limits{}); err != nil || !weighs(toolsWeight) {
		t.Errorf("not the usual weight, %v", err)
	}
	start("fifth")
	if h.version != 1 {
		return
	}
	n := 0
	wait.Until(t, "a favour lasts", func() bool {
		n++
		start(fmt.Sprint("lasting", n))
		r.all.mu.Lock()
		defer r.all.mu.Unlock()
		r.all.favour.until = time.Now().Add(time.Hour)
		return r.all.favour.on
	})
	if err := r.Totals(Limits{Pids: 1000}); err != nil || !weighs(favoured) {
		t.Errorf("other totals end the favour of a start, %v", err)
	}
}
