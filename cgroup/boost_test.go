package cgroup

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// setRest sets how long the bounds rest between two lifts, and ends a rest.
func setRest(r *Root, rest time.Duration) { setRestOf(r.all, rest) }

func setRestOf(b *bounds, rest time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lift.rest, b.lift.ended = rest, time.Time{}
}

// The total CPU quota is lifted while groups are boosted, but neither for long nor all
// the time, and is itself again afterwards.
func TestBoostLiftsTheTotalQuota(t *testing.T) {
	r := openRoot(t, Options{})
	h := r.limited[ctrlCPU]
	if h == nil {
		t.Fatal("no cpu controller here")
	}
	if err := r.Totals(Limits{CPUPercent: 30}); err != nil {
		t.Fatal(err)
	}
	writes, err := r.layout.plan(Limits{CPUPercent: 30})
	if err != nil {
		t.Fatal(err)
	}
	isQuota := func(w write) bool { return w.file == "cpu.max" || w.file == "cpu.cfs_quota_us" }
	file := writes[slices.IndexFunc(writes, isQuota)].file
	quota := func() string {
		t.Helper()
		text, err := h.tools.read(file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(text)
	}
	in := quota()
	groups := []*Group{newGroup(t, r, "a", Limits{}), newGroup(t, r, "b", Limits{}), newGroup(t, r, "c", Limits{})}
	at := func(f func(*Group)) {
		var all sync.WaitGroup
		for _, g := range groups {
			all.Go(func() { f(g) })
		}
		all.Wait()
	}
	setRest(r, 0)
	for range 20 {
		at(func(g *Group) {
			if err := g.Boost(); err != nil {
				t.Error(err)
			}
		})
		if quota() == in {
			t.Fatal("the quota is not lifted")
		}
		groups[0].EndBoost()
		if quota() == in {
			t.Fatal("the quota is back while groups are boosted")
		}
		at((*Group).EndBoost)
		if now := quota(); now != in {
			t.Fatalf("quota %s, was %s", now, in)
		}
	}
	setRest(r, time.Hour)
	if err := groups[0].Boost(); err != nil { // it never dies
		t.Fatal(err)
	}
	wait.Until(t, "the quota is back", func() bool { return quota() == in })
	at((*Group).EndBoost)
	if now := quota(); now != in {
		t.Errorf("quota %s, was %s", now, in)
	}
	if err := groups[1].Boost(); err != nil {
		t.Fatal(err)
	}
	if now := quota(); now != in {
		t.Errorf("the quota is lifted again at once: %s", now)
	}
	groups[1].EndBoost()
	setRest(r, 0)
	if err := groups[1].Boost(); err != nil {
		t.Fatal(err)
	}
	if err := r.Totals(Limits{CPUPercent: 40}); err != nil {
		t.Fatal(err)
	}
	at((*Group).EndBoost)
	if now := quota(); now == in || strings.HasPrefix(now, "max") || now == "-1" {
		t.Errorf("quota %s after another total", now)
	}
}

// The share of the CPU is raised while any group is boosted, but not for long.
func TestBoost(t *testing.T) {
	r := openRoot(t, Options{})
	h := r.limited[ctrlCPU]
	if h == nil {
		t.Fatal("no cpu controller here")
	}
	file := r.layout.weight(1)[0].file
	weight := func(prefix string) string {
		t.Helper()
		text, err := h.tools.read(prefix + file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(text)
	}
	of := func(weight int64) string { return r.layout.weight(weight)[0].value }
	a, b := newGroup(t, r, "a", Limits{}), newGroup(t, r, "b", Limits{})
	want := func(step string, want int64) {
		t.Helper()
		if got := weight(""); got != of(want) {
			t.Errorf("%s: weight %s, want %s", step, got, of(want))
		}
	}
	want("at first", toolsWeight)
	setRest(r, time.Hour)
	began := time.Now()
	for _, g := range []*Group{a, a, b} {
		if err := g.Boost(); err != nil {
			t.Fatal(err)
		}
	}
	if weight("") != of(boostWeight) && time.Since(began) < maxLift {
		t.Errorf("in a boost: weight %s", weight(""))
	}
	wait.Until(t, "the weight is itself again", func() bool { return weight("") == of(toolsWeight) })
	a.EndBoost()
	a.EndBoost()
	if err := b.Remove(); err != nil {
		t.Fatal(err)
	}
	want("no group is boosted", toolsWeight)
	low := newGroup(t, r, "low", Limits{CPUWeight: 3})
	if got := weight(low.leaf + "/"); got != of(defaultWeight) {
		t.Errorf("weight %s before LimitCPU", got)
	}
	if err := low.LimitCPU(); err != nil || weight(low.leaf+"/") != of(3) {
		t.Errorf("weight %s, %v", weight(low.leaf+"/"), err)
	}
	if err := errors.Join(low.Boost(), low.LimitCPU()); err != nil || weight(low.leaf+"/") != of(defaultWeight) {
		t.Errorf("weight %s of a group in a boost, %v", weight(low.leaf+"/"), err)
	}
	low.EndBoost()
	if err := b.Boost(); err != nil {
		t.Errorf("a removed group: %v", err)
	}
	want("a removed group has no boost", toolsWeight)
	for _, total := range []int64{30, 2000, 0} {
		if err := r.Totals(Limits{CPUWeight: total}); err != nil {
			t.Fatal(err)
		}
		want("the operator's", cmp.Or(total, toolsWeight))
		if err := errors.Join(r.all.raise(), r.all.restore()); err != nil {
			t.Fatal(err)
		}
		want("the operator's, after a boost", cmp.Or(total, toolsWeight))
	}
}
