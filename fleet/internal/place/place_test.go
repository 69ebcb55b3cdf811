package place

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func TestFits(t *testing.T) {
	w := Worker{Name: "w1", Labels: map[string]string{"gpu": "a100"}}
	for _, c := range []struct {
		want Want
		fits bool
	}{
		{nil, true},
		{Want{"gpu": "a100", "worker": "w1"}, true},
		{Want{"zone": "eu"}, false},
		{Want{"gpu": "h1"}, false},
		{Want{"worker": "x"}, false},
	} {
		if c.want.Fits(w) != c.fits {
			t.Errorf("%v", c.want)
		}
	}
}

func TestChoose(t *testing.T) {
	workers := []Worker{
		{Name: "full"},
		{Name: "free", Free: 4},
		{Name: "asked", Free: 4, Offered: 3},
		{Name: "draining", State: Draining, Free: 9},
		{Name: "silent", State: Suspect, Free: 9},
	}
	count := map[string]int{}
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		w, ok := Choose(workers, nil, nil, r.IntN)
		if !ok {
			t.Fatal("none is chosen")
		}
		count[w.Name]++
	}
	// Of the two that have a slot, the better one.
	if count["free"] != 3000 {
		t.Errorf("%v", count)
	}
	third := append(workers, Worker{Name: "third", Free: 2})
	clear(count)
	for range 3000 {
		w, _ := Choose(third, nil, nil, r.IntN)
		count[w.Name]++
	}
	// Of two of three: the best one in two cases of three, the worst one never.
	if count["free"] < 1800 || count["third"] < 800 || count["free"]+count["third"] != 3000 {
		t.Errorf("%v", count)
	}
	if w, ok := Choose(workers, nil, []string{"free", "asked"}, r.IntN); !ok || w.Name != "full" {
		t.Errorf("the one that was not tried: %v, %v", w, ok)
	}
	if w, ok := Choose(workers, Want{"worker": "draining"}, nil, r.IntN); ok {
		t.Errorf("%v takes a call", w)
	}
}

// Beats are old and callers many: the better of two keeps the waits short where the best
// of all would send everybody to one worker, and chance alone would leave queues.
func TestTheBetterOfTwoSpreadsLoad(t *testing.T) {
	best := func(workers []Worker, _ *rand.Rand) int {
		at := 0
		for i, w := range workers {
			if w.room() > workers[at].room() {
				at = i
			}
		}
		return at
	}
	chance := func(workers []Worker, r *rand.Rand) int { return r.IntN(len(workers)) }
	two := func(workers []Worker, r *rand.Rand) int {
		w, _ := Choose(workers, nil, nil, r.IntN)
		for i := range workers {
			if workers[i].Name == w.Name {
				return i
			}
		}
		return -1
	}
	ours, byChance, byBest := longest(two), longest(chance), longest(best)
	t.Logf("the longest queue: the better of two %d, by chance %d, the best by beats %d", ours, byChance, byBest)
	if ours*2 > byChance || ours*2 > byBest {
		t.Errorf("the better of two has a queue of %d, chance %d, the best by beats %d", ours, byChance, byBest)
	}
}

// longest plays 50 workers of 4 slots at 90% load, with calls of 10 rounds, 10 callers,
// and beats every 5 rounds, and when the last slot is taken or one is free again. It returns
// the longest queue that there was.
func longest(choose func([]Worker, *rand.Rand) int) (most int) {
	const callers, machines, slots, takes, beat = 10, 50, 4, 10, 5
	r := rand.New(rand.NewPCG(3, 4))
	load := make([]int, machines)
	views := make([][]Worker, callers)
	for c := range views {
		views[c] = make([]Worker, machines)
		for i := range views[c] {
			views[c][i] = Worker{Name: string(rune('A' + i)), Free: slots}
		}
	}
	ends := map[int][]int{} // by round: the machines that end a call
	busy := make([]int, machines)
	tell := func(i int) {
		for _, view := range views {
			view[i].Free, view[i].Offered = slots-load[i], 0
		}
	}
	for round := range 1000 {
		for _, i := range ends[round] {
			if busy[i], load[i] = busy[i]-1, load[i]-1; load[i] == slots-1 {
				tell(i)
			}
		}
		for range machines * slots * 9 / 10 / takes {
			view := views[r.IntN(callers)]
			i := choose(view, r)
			view[i].Offered++
			if load[i]++; load[i] == slots {
				tell(i)
			}
		}
		for i := range load {
			for busy[i] < slots && busy[i] < load[i] {
				busy[i]++
				ends[round+takes] = append(ends[round+takes], i)
			}
			most = max(most, load[i]-slots)
		}
		if round%beat == 0 {
			for i := range load {
				tell(i)
			}
		}
	}
	return most
}

// A key has its home at one worker, and only the keys of one that goes move.
func TestHome(t *testing.T) {
	workers := []Worker{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d", State: Draining}}
	homes := map[string]int{}
	for i := range 300 {
		key := fmt.Sprint(i)
		home, ok := Home(workers, nil, nil, key)
		homes[home.Name]++
		again, _ := Home([]Worker{workers[2], workers[1], workers[0]}, nil, nil, key)
		if !ok || again.Name != home.Name {
			t.Fatalf("%s is at %s, then at %s", key, home.Name, again.Name)
		}
		without, _ := Home(workers, nil, []string{"a"}, key)
		if home.Name != "a" && without.Name != home.Name || without.Name == "a" {
			t.Fatalf("%s moves from %s to %s", key, home.Name, without.Name)
		}
	}
	if len(homes) != 3 || homes["a"] < 50 || homes["b"] < 50 || homes["c"] < 50 {
		t.Errorf("%v", homes)
	}
	if _, ok := Home(workers[3:], nil, nil, "x"); ok {
		t.Error("a worker that drains is a home")
	}
}

// BenchmarkChoose is among a thousand workers.
func BenchmarkChoose(b *testing.B) {
	var workers []Worker
	for i := range 1000 {
		workers = append(workers, Worker{Name: fmt.Sprint(i), Free: i % 5, Labels: map[string]string{"zone": "a"}})
	}
	for b.Loop() {
		if _, ok := Choose(workers, Want{"zone": "a"}, nil, rand.IntN); !ok {
			b.Fatal("none")
		}
	}
}
