package budget

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// checkResolution holds any resolution to what is true of all.
func checkResolution(t *testing.T, p Profile, asks []Ask) {
	t.Helper()
	r := Resolve(p, asks...)
	fail := func(why string) {
		t.Helper()
		t.Fatalf("%s: %+v resolves %+v to %+v", why, p, asks, r)
	}
	if r.Timeout != Infinite && (r.Timeout < r.Min || r.Timeout > r.Max) {
		fail("out of bounds")
	}
	if r.Min <= 0 || r.Min > r.Max || r.Max == Infinite {
		fail("bad bounds")
	}
	lifts := func(a Ask) bool {
		return a.Layer == LayerGlobal && a.Rank == RankTool && !a.TimeoutUnset && (a.Timeout == 0 || a.Timeout == Infinite)
	}
	if r.Timeout == Infinite && (!slices.ContainsFunc(asks, lifts) || r.Source != LayerGlobal) {
		fail("infinite, and no tool's entry says so")
	}
	if r.Clamped && len(r.Warnings) == 0 {
		fail("clamped without a warning")
	}
	if !r.Clamped && r.Requested != nil && *r.Requested != r.Timeout {
		fail("another timeout than asked for, and not clamped")
	}
	if r.SoftBudget <= 0 || r.SoftBudget > r.Timeout {
		fail("bad soft budget")
	}
	for _, w := range r.Warnings {
		if strings.ContainsAny(w, "\r\n") || strings.Contains(w, "9223372036854775807") || strings.Contains(w, "2562047h47m16.854775807s") {
			fail("bad warning")
		}
	}
}

// slots are all places where somebody may ask, in order of precedence.
var slots = []Ask{
	{Layer: LayerHint},
	{Layer: LayerGlobal, Rank: RankProfile},
	{Layer: LayerGlobal, Rank: RankClass},
	{Layer: LayerGlobal, Rank: RankTool},
	{Layer: LayerGlobal, Rank: RankEnvironment},
	{Layer: LayerGlobal, Rank: RankFlag},
	{Layer: LayerClient},
	{Layer: LayerCall},
}

// Every subset of the layers, in two orders, with values that need no clamping: the
// highest decides, and nobody is warned.
func TestPrecedenceOfEverySubset(t *testing.T) {
	for _, p := range Profiles() {
		for subset := range 1 << len(slots) {
			var asks []Ask
			want := Ask{Layer: LayerStandard, Timeout: p.Default}
			for i, a := range slots {
				if subset&(1<<i) != 0 {
					a.Timeout = p.Min + time.Duration(i+1)*time.Millisecond
					a.Detail = string(rune('a' + i))
					asks, want = append(asks, a), a
				}
			}
			for range 2 {
				slices.Reverse(asks)
				r := Resolve(p, asks...)
				if r.Timeout != want.Timeout || r.Source != want.Layer || r.SourceDetail != want.Detail || r.Clamped || r.Warnings != nil {
					t.Fatalf("%s: %+v resolve to %+v, want %+v", p.Name, asks, r, want)
				}
			}
		}
	}
}

// Every interesting value in every subset of call, client and one global rank.
func TestInvariantsOfEveryCombination(t *testing.T) {
	for _, p := range Profiles() {
		values := interesting(p)
		for _, c := range values {
			for _, cl := range values {
				for _, g := range values {
					for rank := RankProfile; rank <= RankFlag; rank++ {
						checkResolution(t, p, present(Ask{Layer: LayerCall}, c, Ask{Layer: LayerClient}, cl, Ask{Layer: LayerGlobal, Rank: rank}, g))
					}
				}
			}
		}
	}
}

// One ask alone: a warning exactly where the value is not what was asked for.
func TestWarningExactlyOnChange(t *testing.T) {
	for _, p := range Profiles() {
		for _, slot := range slots {
			for _, v := range interesting(p) {
				if v == nil {
					continue
				}
				slot.Timeout = *v
				r := Resolve(p, slot)
				lifted := *v == 0 && r.Timeout == Infinite
				if changed := r.Timeout != *v && !lifted; changed != r.Clamped || changed != (len(r.Warnings) == 1) {
					t.Errorf("%s: %+v resolves to %+v", p.Name, slot, r)
				}
			}
		}
	}
}

// interesting gives values at and around each edge; nil means none.
func interesting(p Profile) []*time.Duration {
	list := []*time.Duration{nil}
	for _, d := range []time.Duration{
		-1 << 63, -time.Second, 0, 1, p.Min - 1, p.Min, p.Default, p.Max, p.Max + 1, Infinite - 1, Infinite,
	} {
		list = append(list, &d)
	}
	return list
}

func present(a Ask, av *time.Duration, b Ask, bv *time.Duration, c Ask, cv *time.Duration) []Ask {
	var asks []Ask
	for _, pair := range []struct {
		ask   Ask
		value *time.Duration
	}{{a, av}, {b, bv}, {c, cv}} {
		if pair.value != nil {
			pair.ask.Timeout = *pair.value
			asks = append(asks, pair.ask)
		}
	}
	return asks
}

func FuzzResolve(f *testing.F) {
	f.Add(uint8(10), []byte{3, 0, 2, 0}, int64(1), int64(0), int64(0), int64(0), "x")
	f.Add(uint8(0), []byte{1, 2, 3, 4, 5, 6, 7, 255}, int64(Infinite), int64(-1), int64(Infinite), int64(5), "a\nb")
	f.Add(uint8(5), []byte{0x83, 0x43, 0x17}, int64(300e6), int64(50e9), int64(40e9), int64(0), "")
	f.Fuzz(func(t *testing.T, which uint8, layers []byte, timeout, lowest, highest, soft int64, detail string) {
		p := Profiles()[int(which)%len(standard)]
		var asks []Ask
		for i, b := range layers[:min(len(layers), 8)] {
			a := slots[int(b)%len(slots)]
			a.TimeoutUnset = b&0x80 != 0
			shift := i * 3 // later asks have other values
			a.Timeout, a.Soft, a.Detail = time.Duration(timeout>>shift), time.Duration(soft>>shift), detail
			if b&0x40 != 0 {
				a.Min, a.Max = time.Duration(lowest>>shift), time.Duration(highest>>shift)
			}
			asks = append(asks, a)
		}
		checkResolution(t, p, asks)
		checkResolution(t, Profile{Name: detail, Default: time.Duration(timeout), Min: time.Duration(lowest), Max: time.Duration(highest)}, asks)
	})
}
