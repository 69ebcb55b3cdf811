package cgroup

import (
	"strings"
	"testing"
)

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
