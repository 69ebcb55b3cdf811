package cgroup

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// The total CPU quota is lifted while groups hurry, but not for long, and is
// itself again afterwards.
func TestHurryLiftsTheTotalQuota(t *testing.T) {
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
	for range 20 {
		at(func(g *Group) {
			if err := g.Hurry(); err != nil {
				t.Error(err)
			}
		})
		if quota() == in {
			t.Fatal("the quota is not lifted")
		}
		groups[0].Calm()
		if quota() == in {
			t.Fatal("the quota is back while groups hurry")
		}
		at((*Group).Calm)
		if now := quota(); now != in {
			t.Fatalf("quota %s, was %s", now, in)
		}
	}
	if err := groups[0].Hurry(); err != nil { // it never dies
		t.Fatal(err)
	}
	wait.Until(t, "the quota is back", func() bool { return quota() == in })
	at((*Group).Calm)
	if now := quota(); now != in {
		t.Errorf("quota %s, was %s", now, in)
	}
	if err := groups[1].Hurry(); err != nil {
		t.Fatal(err)
	}
	if err := r.Totals(Limits{CPUPercent: 40}); err != nil {
		t.Fatal(err)
	}
	at((*Group).Calm)
	if now := quota(); now == in || strings.HasPrefix(now, "max") || now == "-1" {
		t.Errorf("quota %s after another total", now)
	}
}

// The share of the CPU is raised while any group hurries, and no longer.
func TestHurry(t *testing.T) {
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
	for _, g := range []*Group{a, a, b} {
		if err := g.Hurry(); err != nil {
			t.Fatal(err)
		}
		want("in a hurry", hurryWeight)
	}
	if got := weight(a.leaf + "/"); got != of(maxWeight) {
		t.Errorf("the group's own weight is %s", got)
	}
	a.Calm()
	a.Calm()
	want("one is still in a hurry", hurryWeight)
	if err := b.Remove(); err != nil {
		t.Fatal(err)
	}
	want("all are calm", toolsWeight)
	if err := b.Hurry(); err != nil {
		t.Errorf("a removed group: %v", err)
	}
	want("a removed group has no hurry", toolsWeight)
}
