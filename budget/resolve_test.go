package budget

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func toolCall() Profile {
	p, _ := Standard(ToolCall)
	return p
}

// What is said of settings is told from what is said of a call's own ask.
func TestSettings(t *testing.T) {
	profile, _ := Standard(ToolCall)
	client := Ask{Layer: LayerClient, TimeoutUnset: true, Max: 20 * sec, Detail: "client"}
	for name, one := range map[string]struct {
		asks          []Ask
		own, settings int
	}{
		"nobody asks":                    {nil, 0, 0},
		"the client leaves less":         {[]Ask{client}, 0, 1},
		"... than the operator's":        {[]Ask{global(RankTool, 60*sec), client}, 0, 1},
		"... than the call's":            {[]Ask{call(60 * sec), client}, 1, 0},
		"... and the call asks for less": {[]Ask{call(5 * sec), client}, 0, 0},
		"above the maximum":              {[]Ask{call(2 * hour)}, 1, 0},
		"an operator's below the client": {[]Ask{global(RankProfile, 0), call(2 * hour)}, 1, 0},
		"zero of the call's":             {[]Ask{call(0), client}, 1, 1},
		"a client's zero":                {[]Ask{{Layer: LayerClient}}, 0, 1},
	} {
		r := Resolve(profile, one.asks...)
		if len(r.Warnings)-len(r.Settings) != one.own || len(r.Settings) != one.settings {
			t.Errorf("%s: %q, of which %q are of settings", name, r.Warnings, r.Settings)
		}
	}
}

func call(d time.Duration) Ask   { return Ask{Layer: LayerCall, Timeout: d, Detail: "request"} }
func client(d time.Duration) Ask { return Ask{Layer: LayerClient, Timeout: d} }
func hint(d time.Duration) Ask   { return Ask{Layer: LayerHint, Timeout: d, Detail: "Describe"} }
func global(r Rank, d time.Duration) Ask {
	return Ask{Layer: LayerGlobal, Rank: r, Timeout: d, Detail: rankDetails[r]}
}

func limits(layer Layer, r Rank, lowest, highest time.Duration) Ask {
	return Ask{Layer: layer, Rank: r, TimeoutUnset: true, Min: lowest, Max: highest, Detail: "bounds"}
}

var rankDetails = map[Rank]string{
	RankProfile: "toolhost.yaml:2", RankClass: "toolhost.yaml:5", RankTool: "toolhost.yaml:12",
	RankEnvironment: "TOOLHOST_TIMEOUT", RankFlag: "--timeout",
}

const ms, sec, hour = time.Millisecond, time.Second, time.Hour

type resolveCase struct {
	name    string
	profile string // default tool_call
	asks    []Ask
	timeout time.Duration
	source  Layer
	detail  string
	clamped bool
	warning string // what the only warning contains; "" for no warning
}

var resolveCases = []resolveCase{
	{name: "nobody asks", timeout: 30 * sec, source: LayerStandard},
	{name: "as given", asks: []Ask{call(45 * sec)}, timeout: 45 * sec, source: LayerCall, detail: "request"},
	{name: "at min", asks: []Ask{call(sec)}, timeout: sec, source: LayerCall, detail: "request"},
	{name: "at max", asks: []Ask{call(hour)}, timeout: hour, source: LayerCall, detail: "request"},
	{
		name: "below min", asks: []Ask{call(90 * ms)}, timeout: sec, source: LayerCall, detail: "request", clamped: true,
		warning: "timeout 90ms asked by call (request) is below the minimum 1s of tool_call: 1s is used",
	},
	{
		name: "above max", asks: []Ask{client(2 * hour)}, timeout: hour, source: LayerClient, clamped: true,
		warning: "timeout 2h asked by client is above the maximum 1h of tool_call: 1h is used",
	},
	{
		name: "negative", asks: []Ask{call(math.MinInt64)}, timeout: sec, source: LayerCall, detail: "request", clamped: true,
		warning: "below the minimum 1s",
	},
	{
		name: "largest finite", asks: []Ask{call(Infinite - 1)}, timeout: hour, source: LayerCall, detail: "request", clamped: true,
		warning: "above the maximum 1h",
	},
	{
		name: "0 where nothing is infinite", profile: Heartbeat, asks: []Ask{call(0)}, timeout: 5 * sec, source: LayerStandard, clamped: true,
		warning: "timeout 0 asked by call (request) is not allowed, heartbeat always ends: the default 5s is used",
	},
	{
		name: "0 from a call", asks: []Ask{call(0)}, timeout: 30 * sec, source: LayerStandard, clamped: true,
		warning: "only a tool's entry in the operator's config may lift it: the default 30s is used",
	},
	{
		name: "0 from a call, with an operator's default", asks: []Ask{call(0), global(RankProfile, 120*sec), hint(5 * sec)},
		timeout: 120 * sec, source: LayerGlobal, detail: "toolhost.yaml:2", clamped: true, warning: "the default 2m is used",
	},
	{
		name: "0 from a call silences the hint", asks: []Ask{call(0), hint(5 * sec)},
		timeout: 30 * sec, source: LayerStandard, clamped: true, warning: "the default 30s is used",
	},
	{
		name: "infinite from a call", asks: []Ask{call(Infinite)}, timeout: hour, source: LayerCall, detail: "request", clamped: true,
		warning: "timeout infinite asked by call (request) is not allowed, only a tool's entry",
	},
	{
		name: "infinite from a flag", asks: []Ask{global(RankFlag, Infinite)}, timeout: hour, source: LayerGlobal, detail: "--timeout", clamped: true,
		warning: "timeout infinite asked by global (--timeout)",
	},
	{
		name: "0 from a flag over a tool entry", asks: []Ask{global(RankFlag, 0), global(RankTool, 60*sec)},
		timeout: 60 * sec, source: LayerGlobal, detail: "toolhost.yaml:12", clamped: true, warning: "timeout 0 asked by global (--timeout)",
	},
	{name: "infinite tool entry", asks: []Ask{global(RankTool, Infinite)}, timeout: Infinite, source: LayerGlobal, detail: "toolhost.yaml:12"},
	{name: "0 in a tool entry", asks: []Ask{global(RankTool, 0)}, timeout: Infinite, source: LayerGlobal, detail: "toolhost.yaml:12"},
	{name: "a call under an infinite tool entry", asks: []Ask{call(60 * sec), global(RankTool, Infinite)}, timeout: 60 * sec, source: LayerCall, detail: "request"},
	{
		name: "infinite from a call on an infinite tool", asks: []Ask{call(Infinite), global(RankTool, Infinite)},
		timeout: hour, source: LayerCall, detail: "request", clamped: true, warning: "1h is used",
	},
	{
		name: "infinite tool entry, profile that ends", profile: WorkflowSubmit, asks: []Ask{global(RankTool, Infinite)},
		timeout: 120 * sec, source: LayerGlobal, detail: "toolhost.yaml:12", clamped: true, warning: "workflow_submit always ends",
	},
	{
		name: "0 in a tool entry, profile that ends", profile: WorkflowSubmit, asks: []Ask{global(RankTool, 0)},
		timeout: 30 * sec, source: LayerStandard, clamped: true, warning: "workflow_submit always ends: the default 30s is used",
	},
	{name: "the operator's is as given, below min", asks: []Ask{global(RankFlag, 300*ms)}, timeout: 300 * ms, source: LayerGlobal, detail: "--timeout"},
	{name: "the operator's is as given, above max", asks: []Ask{global(RankTool, 5*hour)}, timeout: 5 * hour, source: LayerGlobal, detail: "toolhost.yaml:12"},
	{
		name: "a call is held to the moved min", asks: []Ask{call(100 * ms), global(RankFlag, 300*ms)},
		timeout: 300 * ms, source: LayerCall, detail: "request", clamped: true, warning: "below the minimum 300ms",
	},
	{name: "a call between moved and standard min", asks: []Ask{call(500 * ms), global(RankFlag, 300*ms)}, timeout: 500 * ms, source: LayerCall, detail: "request"},
	{
		name: "an overruled value moves nothing", asks: []Ask{call(500 * ms), global(RankFlag, 20*sec), global(RankTool, 300*ms)},
		timeout: sec, source: LayerCall, detail: "request", clamped: true, warning: "below the minimum 1s",
	},
	{
		name: "a negative value of the operator's", asks: []Ask{global(RankFlag, -sec)},
		timeout: sec, source: LayerGlobal, detail: "--timeout", clamped: true, warning: "timeout -1s asked by global (--timeout) is below",
	},
	{name: "a hint alone", asks: []Ask{hint(90 * sec)}, timeout: 90 * sec, source: LayerHint, detail: "Describe"},
	{name: "a hint under anybody", asks: []Ask{hint(90 * sec), global(RankProfile, 60*sec)}, timeout: 60 * sec, source: LayerGlobal, detail: "toolhost.yaml:2"},
	{name: "a hint beside bounds only", asks: []Ask{hint(90 * sec), limits(LayerGlobal, RankFlag, 0, 2*hour)}, timeout: 90 * sec, source: LayerHint, detail: "Describe"},
	{
		name: "a hint is clamped", asks: []Ask{hint(2 * hour)}, timeout: hour, source: LayerHint, detail: "Describe", clamped: true,
		warning: "timeout 2h asked by hint (Describe)",
	},
	{name: "the later of equals", asks: []Ask{call(5 * sec), call(6 * sec)}, timeout: 6 * sec, source: LayerCall, detail: "request"},
	{
		name: "an unknown layer", asks: []Ask{{Layer: "clinet", Timeout: 5 * sec}}, timeout: 30 * sec, source: LayerStandard,
		warning: `timeout 5s asked by unknown layer "clinet" is put aside: 30s is used`,
	},
}

func TestResolve(t *testing.T) {
	for _, c := range resolveCases {
		t.Run(c.name, func(t *testing.T) { c.check(t) })
	}
}

func (c resolveCase) check(t *testing.T) {
	t.Helper()
	p := toolCall()
	if c.profile != "" {
		p, _ = Standard(c.profile)
	}
	r := Resolve(p, c.asks...)
	if r.Profile != p.Name || r.Timeout != c.timeout || r.Source != c.source || r.SourceDetail != c.detail || r.Clamped != c.clamped {
		t.Errorf("got %s by %s, clamped %v, profile %s; want %s by %s, clamped %v", Format(r.Timeout), who(r.Source, r.SourceDetail),
			r.Clamped, r.Profile, Format(c.timeout), who(c.source, c.detail), c.clamped)
	}
	switch {
	case c.warning == "" && r.Warnings != nil:
		t.Errorf("warnings without need: %q", r.Warnings)
	case c.warning != "" && (len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], c.warning)):
		t.Errorf("warnings %q, want one with %q", r.Warnings, c.warning)
	}
}

// What is left of a timeout holds below the minimum, and is no other timeout.
func TestResolveWhatIsLeft(t *testing.T) {
	asked := global(RankTool, 60*sec)
	want := Resolve(toolCall(), asked)
	got := Resolve(toolCall(), asked, Ask{Layer: LayerClient, TimeoutUnset: true, Max: time.Millisecond, Left: true})
	if got.Timeout != time.Millisecond || got.Max != time.Millisecond || got.Min <= got.Timeout {
		t.Errorf("got %s, between %s and %s", Format(got.Timeout), Format(got.Min), Format(got.Max))
	}
	if got.Source != want.Source || got.Clamped != want.Clamped || len(got.Warnings) > 0 {
		t.Errorf("by %s, clamped %v, warnings %q", got.Source, got.Clamped, got.Warnings)
	}
}

func TestResolveRequested(t *testing.T) {
	if r := Resolve(toolCall()); r.Requested != nil {
		t.Errorf("requested %s", Format(*r.Requested))
	}
	if r := Resolve(toolCall(), limits(LayerGlobal, RankFlag, 0, sec)); r.Requested != nil {
		t.Errorf("bounds requested %s", Format(*r.Requested))
	}
	r := Resolve(toolCall(), global(RankTool, 60*sec), call(0))
	if r.Requested == nil || *r.Requested != 0 {
		t.Errorf("requested %v, want the call's 0", r.Requested)
	}
}

func TestResolveSoftBudget(t *testing.T) {
	soft := func(layer Layer, r Rank, d time.Duration) Ask {
		return Ask{Layer: layer, Rank: r, TimeoutUnset: true, Soft: d}
	}
	for _, c := range []struct {
		name string
		asks []Ask
		want time.Duration
	}{
		{"default", nil, 10 * sec},
		{"no longer than the timeout", []Ask{call(2 * sec)}, 2 * sec},
		{"asked", []Ask{soft(LayerGlobal, RankFlag, 20*sec)}, 20 * sec},
		{"by precedence", []Ask{soft(LayerGlobal, RankFlag, 20*sec), soft(LayerGlobal, RankTool, 5*sec), soft(LayerClient, 0, 15*sec)}, 15 * sec},
		{"apart from the timeout", []Ask{soft(LayerGlobal, RankFlag, 20*sec), call(25 * sec)}, 20 * sec},
		{"negative is unset", []Ask{soft(LayerCall, 0, -1)}, 10 * sec},
		{"infinite timeout", []Ask{global(RankTool, Infinite)}, 10 * sec},
	} {
		if r := Resolve(toolCall(), c.asks...); r.SoftBudget != c.want {
			t.Errorf("%s: soft budget %s, want %s", c.name, Format(r.SoftBudget), Format(c.want))
		}
	}
}

func TestResolveRepairsProfile(t *testing.T) {
	if r := Resolve(Profile{}); r.Profile != ToolCall || r.Timeout != 30*sec || r.Warnings != nil {
		t.Errorf("zero profile: %+v", r)
	}
	r := Resolve(Profile{Name: "mine", Default: sec})
	if r.Profile != ToolCall || r.Timeout != 30*sec || len(r.Warnings) != 1 {
		t.Errorf("invalid profile: %+v", r)
	}
	mine := Profile{Name: "mine", Default: 3, Min: 2, Max: 4}
	if r := Resolve(mine); r.Profile != "mine" || r.Timeout != 3 || r.Warnings != nil {
		t.Errorf("own profile: %+v", r)
	}
}

func TestResolveLeavesAsksAlone(t *testing.T) {
	asks := []Ask{global(RankTool, 0), call(5 * sec), client(6 * sec)}
	before := slices.Clone(asks)
	Resolve(toolCall(), asks...)
	if !slices.Equal(asks, before) {
		t.Errorf("asks are now %+v", asks)
	}
}

func TestWarningsAreOneBoundedLine(t *testing.T) {
	ask := call(90 * ms)
	ask.Detail = "a\nb\x1b[31m\u2028\xff" + strings.Repeat("é", 2000)
	for _, w := range Resolve(toolCall(), ask).Warnings {
		if strings.ContainsAny(w, "\n\r\x1b\u2028") || len([]rune(w)) > maxWarningRunes {
			t.Errorf("warning %q", w)
		}
	}
}
