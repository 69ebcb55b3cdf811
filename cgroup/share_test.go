package cgroup

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

func newGroupIn(t testing.TB, r *Root, s Share, name string, l Limits) *Group {
	t.Helper()
	g, err := r.NewGroupIn(s, name, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { destroy(t, g) })
	return g
}

// shares counts the directories of shares in all hierarchies.
func shares(t testing.TB, r *Root) (n int) {
	t.Helper()
	for _, h := range r.hierarchies() {
		names, err := h.tools.names(true)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasPrefix(name, sharePrefix) {
				n++
			}
		}
	}
	return n
}

// The memory of a Share is that of all its groups together. The one that dies of it
// is told so, and nobody else; neither is the directory left behind.
func TestMemoryOfAShare(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		own := Share{"token ci", Limits{MemoryBytes: 96 << 20}}
		if n := shares(t, r); n != 0 {
			t.Fatalf("%d directories at first", n)
		}
		first := newGroupIn(t, r, own, "first", Limits{MemoryBytes: 256 << 20})
		spawn(t, first, "allocate", "20").expect("ready").expect("allocated")
		other := newGroupIn(t, r, Share{"token other", own.Limits}, "other", Limits{MemoryBytes: 256 << 20})
		spawn(t, other, "allocate", "60").expect("ready").expect("allocated")
		greedy := newGroupIn(t, r, own, "greedy", Limits{MemoryBytes: 256 << 20})
		spawn(t, greedy, "allocate", "200").expect("ready")
		awaitOOM(t, greedy)
		u := finish(t, greedy)
		if u.ShareOOMKills == 0 || u.AncestorOOMKills != u.ShareOOMKills || u.OOMKills != 0 || u.OOMEvents != 0 {
			t.Errorf("usage of the greedy one %+v", u)
		}
		for _, g := range []*Group{first, other} {
			if u := finish(t, g); u.ShareOOMKills != 0 || u.AncestorOOMKills != 0 || u.OOMKills != 0 || u.OOMEvents != 0 {
				t.Errorf("usage of %s: %+v", g.leaf, u)
			}
		}
		if n := shares(t, r); n != 2*len(r.hierarchies()) {
			t.Errorf("%d directories of two shares", n)
		}
		for _, g := range []*Group{first, other, greedy} {
			if err := g.Remove(); err != nil {
				t.Error(err)
			}
		}
		if n := shares(t, r); n != 0 || len(r.shares) != 0 {
			t.Errorf("%d directories are left, and %d shares are known", n, len(r.shares))
		}
	})
}

// The total is not taken for a Share's.
func TestTotalAboveAShare(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		if err := r.Totals(Limits{MemoryBytes: 96 << 20}); err != nil {
			t.Fatal(err)
		}
		g := newGroupIn(t, r, Share{"ci", Limits{MemoryBytes: 256 << 20}}, "greedy", Limits{MemoryBytes: 256 << 20})
		spawn(t, g, "allocate", "200").expect("ready")
		awaitOOM(t, g)
		if u := finish(t, g); u.AncestorOOMKills == 0 || u.ShareOOMKills != 0 || u.OOMKills != 0 {
			t.Errorf("usage %+v", u)
		}
	})
}

// A group's own OOM is its own, in a Share too.
func TestOwnOOMInAShare(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		g := newGroupIn(t, r, Share{"ci", Limits{MemoryBytes: 256 << 20}}, "own", Limits{MemoryBytes: 48 << 20})
		spawn(t, g, "allocate", "200").expect("ready")
		awaitOOM(t, g)
		if u := finish(t, g); u.OOMEvents == 0 || u.AncestorOOMKills != 0 || u.ShareOOMKills != 0 {
			t.Errorf("usage %+v", u)
		}
	})
}

// A group may have no more of the CPU than its Share, which cgroup v1 would refuse;
// nor may the Share than all together. In a boost the quota is lifted, and is back.
func TestCPUOfAShare(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		h := r.limited[ctrlCPU]
		file, read := "cpu.max", func(text string) (quota string) { quota, _, _ = strings.Cut(text, " "); return quota }
		if h.version == 1 {
			file, read = fileQuotaV1, strings.TrimSpace
		}
		quota := func(dir string) string {
			t.Helper()
			text, err := h.tools.read(dir + "/" + file)
			if err != nil {
				t.Fatal(err)
			}
			return read(text)
		}
		if err := r.Totals(Limits{CPUPercent: 60}); err != nil {
			t.Fatal(err)
		}
		g := newGroupIn(t, r, Share{"ci", Limits{CPUPercent: 30}}, "g", Limits{CPUPercent: 200})
		if err := g.LimitCPU(); err != nil {
			t.Fatal(err)
		}
		if leaf, all := quota(g.leaf), quota(g.share.dir); leaf != "30000" || all != "30000" {
			t.Errorf("quotas %s and %s, want 30000", leaf, all)
		}
		large := newGroupIn(t, r, Share{"large", Limits{CPUPercent: 500}}, "l", Limits{})
		if all := quota(large.share.dir); all != "60000" {
			t.Errorf("a share of more than all: %s", all)
		}
		for _, share := range []Share{{}, {"large", Limits{CPUPercent: 500}}} {
			above := newGroupIn(t, r, share, "above"+share.Name, Limits{CPUPercent: 300})
			if err := above.LimitCPU(); err != nil || quota(above.leaf) != "60000" {
				t.Errorf("in share %q, with a limit above the total: %v, quota %s", share.Name, err, quota(above.leaf))
			}
		}
		setRestOf(g.share.bounds, 0)
		if err := g.Boost(); err != nil {
			t.Fatal(err)
		}
		if now := quota(g.share.dir); now == "30000" {
			t.Error("the quota is not lifted")
		}
		g.EndBoost()
		if now := quota(g.share.dir); now != "30000" {
			t.Errorf("quota %s after a boost", now)
		}
	})
}

// Groups of one Share together weigh what they would without it, but for those that rest.
func TestWeightOfAShare(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		h, file := r.limited[ctrlCPU], r.layout.weight(1)[0].file
		own := Share{"ci", Limits{CPUPercent: 50}}
		a, b := newGroupIn(t, r, own, "a", Limits{}), newGroupIn(t, r, own, "b", Limits{CPUWeight: 400})
		want := func(weight int64) {
			t.Helper()
			text, err := h.tools.read(a.share.prefix + file)
			if got := strings.TrimSpace(text); err != nil || got != r.layout.weight(weight)[0].value {
				t.Errorf("weight %s, %v; want %d", got, err, weight)
			}
		}
		want(500)
		for range 2 { // once is enough
			b.Rest()
			want(100)
		}
		a.Rest()
		want(1)
		b.Rise()
		want(400)
		a.Rise()
		want(500)
		b.Rest()
		if err := b.Remove(); err != nil {
			t.Fatal(err)
		}
		want(100)
	})
}

// The directory comes and goes under groups that come and go at once.
func TestSharesComeAndGo(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		var all sync.WaitGroup
		for worker := range 8 {
			all.Go(func() {
				own := Share{fmt.Sprint("uid ", worker%2), Limits{MemoryBytes: 64 << 20, CPUPercent: 50}}
				for i := range 25 {
					g, err := r.NewGroupIn(own, fmt.Sprint(worker, "-", i), Limits{MemoryBytes: 32 << 20})
					if err != nil {
						t.Error(err)
						return
					}
					if err := g.Remove(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if n := shares(t, r); n != 0 || len(r.shares) != 0 {
			t.Errorf("%d directories are left, and %d shares are known", n, len(r.shares))
		}
	})
}

// What is not there cannot bound anybody: no group is made, and nothing stays.
func TestAShareThatCannotBe(t *testing.T) {
	r := openRoot(t, Options{})
	for _, s := range []Share{{"ci", Limits{MemoryBytes: 1}}, {"ci", Limits{CPUPercent: -1}}} {
		if g, err := r.NewGroupIn(s, "g", Limits{}); err == nil || !strings.Contains(err.Error(), `"ci" together`) {
			t.Errorf("%+v: %v, %v", s, g, err)
		}
	}
	if _, err := None().NewGroupIn(Share{"ci", Limits{MemoryBytes: 64 << 20}}, "g", Limits{}); err == nil {
		t.Error("without cgroups")
	}
	g := newGroupIn(t, r, Share{"ci", Limits{MemoryBytes: 64 << 20}}, "g", Limits{})
	if _, err := r.NewGroupIn(Share{"ci", Limits{MemoryBytes: 64 << 20}}, "g", Limits{}); err == nil {
		t.Error("a name twice")
	}
	if g.share.users != 1 {
		t.Errorf("%d groups are counted", g.share.users)
	}
	if n := shares(t, r); n != len(r.hierarchies()) {
		t.Errorf("%d directories", n)
	}
}
