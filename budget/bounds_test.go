package budget

import (
	"testing"
	"time"
)

func TestOperatorBounds(t *testing.T) {
	both := func(a Ask, lowest, highest time.Duration) Ask {
		a.Min, a.Max = lowest, highest
		return a
	}
	for _, c := range []struct {
		resolveCase
		min, max time.Duration
	}{
		{resolveCase{name: "as in the profile", timeout: 30 * sec, source: LayerStandard}, sec, hour},
		{resolveCase{
			name: "a lower max takes the default along, silently", asks: []Ask{limits(LayerGlobal, RankFlag, 0, 20*sec)},
			timeout: 20 * sec, source: LayerGlobal, detail: "bounds",
		}, sec, 20 * sec},
		{resolveCase{
			name: "a higher min takes the default along", asks: []Ask{limits(LayerGlobal, RankFlag, 40*sec, 0)},
			timeout: 40 * sec, source: LayerGlobal, detail: "bounds",
		}, 40 * sec, hour},
		{resolveCase{
			name: "the higher rank's bound", asks: []Ask{limits(LayerGlobal, RankFlag, 0, 20*sec), limits(LayerGlobal, RankTool, 0, 10*sec)},
			timeout: 20 * sec, source: LayerGlobal, detail: "bounds",
		}, sec, 20 * sec},
		{resolveCase{
			name: "a max below the standard min", asks: []Ask{limits(LayerGlobal, RankFlag, 0, 200*ms)},
			timeout: 200 * ms, source: LayerGlobal, detail: "bounds",
		}, 200 * ms, 200 * ms},
		{resolveCase{
			name: "a min above the standard max", asks: []Ask{limits(LayerGlobal, RankFlag, 2*hour, 0)},
			timeout: 2 * hour, source: LayerGlobal, detail: "bounds",
		}, 2 * hour, 2 * hour},
		{resolveCase{
			name: "a contradiction of equals", asks: []Ask{limits(LayerGlobal, RankFlag, 50*sec, 40*sec)},
			timeout: 40 * sec, source: LayerGlobal, detail: "bounds",
			warning: "minimum 50s of tool_call set by global (bounds) contradicts 40s set by global (bounds): 40s is used",
		}, 40 * sec, 40 * sec},
		{resolveCase{
			name: "a contradiction of ranks", asks: []Ask{limits(LayerGlobal, RankFlag, 50*sec, 0), limits(LayerGlobal, RankTool, 0, 40*sec)},
			timeout: 50 * sec, source: LayerGlobal, detail: "bounds", warning: "maximum 40s",
		}, 50 * sec, 50 * sec},
		{resolveCase{
			name: "a max of the same rank holds", asks: []Ask{both(global(RankProfile, 2*hour), 0, 90*sec)},
			timeout: 90 * sec, source: LayerGlobal, detail: "toolhost.yaml:2", clamped: true, warning: "above the maximum 1m30s",
		}, sec, 90 * sec},
		{resolveCase{
			name: "a max of a lower rank yields", asks: []Ask{global(RankTool, 2*hour), limits(LayerGlobal, RankProfile, 0, 90*sec)},
			timeout: 2 * hour, source: LayerGlobal, detail: "toolhost.yaml:12",
		}, sec, 2 * hour},
		{resolveCase{
			name: "a max of a higher rank holds against infinite", asks: []Ask{global(RankTool, Infinite), limits(LayerGlobal, RankFlag, 0, 90*sec)},
			timeout: 90 * sec, source: LayerGlobal, detail: "toolhost.yaml:12", clamped: true, warning: "the operator set a maximum: 1m30s is used",
		}, sec, 90 * sec},
		{resolveCase{
			name: "an infinite max", asks: []Ask{limits(LayerGlobal, RankFlag, 0, Infinite)},
			timeout: 30 * sec, source: LayerStandard, warning: "maximum infinite of tool_call set by global (bounds) is not finite: 1h is used",
		}, sec, hour},
		{resolveCase{
			name: "an infinite max that is overruled", asks: []Ask{limits(LayerGlobal, RankTool, 0, Infinite), limits(LayerGlobal, RankFlag, 0, 2*hour)},
			timeout: 30 * sec, source: LayerStandard,
		}, sec, 2 * hour},
		{resolveCase{
			name: "a call does not widen", asks: []Ask{limits(LayerCall, 0, 1, 9*hour), call(2 * sec)},
			timeout: 2 * sec, source: LayerCall, detail: "request",
		}, sec, hour},
		{resolveCase{
			name: "a client leaves less", asks: []Ask{limits(LayerClient, 0, 0, 55*sec), call(60 * sec)},
			timeout: 55 * sec, source: LayerClient, detail: "bounds", clamped: true,
			warning: "timeout 1m is longer than the 55s that client (bounds) leaves: 55s is used",
		}, sec, 55 * sec},
		{resolveCase{
			name: "a client leaves enough", asks: []Ask{limits(LayerClient, 0, 0, 55*sec), call(50 * sec)},
			timeout: 50 * sec, source: LayerCall, detail: "request",
		}, sec, 55 * sec},
		{resolveCase{
			name: "a client leaves less than the minimum", asks: []Ask{limits(LayerClient, 0, 0, 10*ms)},
			timeout: sec, source: LayerClient, detail: "bounds", clamped: true, warning: "longer than the 10ms that client (bounds) leaves: 1s is used",
		}, sec, sec},
		{resolveCase{
			name: "a client ends an infinite tool", asks: []Ask{limits(LayerClient, 0, 0, 2*hour), global(RankTool, Infinite)},
			timeout: 2 * hour, source: LayerClient, detail: "bounds", clamped: true, warning: "timeout infinite is longer than the 2h",
		}, sec, 2 * hour},
		{resolveCase{
			name: "a hint's bounds are not heard", asks: []Ask{both(hint(9*sec), 20*sec, 21*sec)},
			timeout: 9 * sec, source: LayerHint, detail: "Describe",
		}, sec, hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.check(t)
			if r := Resolve(toolCall(), c.asks...); r.Min != c.min || r.Max != c.max {
				t.Errorf("bounds %s to %s, want %s to %s", Format(r.Min), Format(r.Max), Format(c.min), Format(c.max))
			}
		})
	}
}
