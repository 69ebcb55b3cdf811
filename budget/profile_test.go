package budget

import (
	"testing"
	"time"
)

func TestStandardProfiles(t *testing.T) {
	want := []struct {
		name                      string
		standard, lowest, highest int64 // ms
		infinite                  bool
	}{
		{"heartbeat", 5000, 1000, 30000, false},
		{"registration", 30000, 5000, 120000, false},
		{"task_submit", 30000, 5000, 300000, false},
		{"message_route", 10000, 1000, 60000, false},
		{"negotiation_open", 60000, 10000, 600000, false},
		{"negotiation_vote", 300000, 30000, 1800000, true},
		{"negotiation_decision", 60000, 5000, 300000, false},
		{"handoff", 60000, 10000, 300000, false},
		{"workflow_submit", 30000, 5000, 120000, false},
		{"workflow_status", 10000, 1000, 60000, false},
		{"tool_call", 30000, 1000, 3600000, true},
		{"hitl_escalate", 300000, 60000, 3600000, true},
	}
	all := Profiles()
	if len(all) != len(want) {
		t.Fatalf("%d profiles, want %d", len(all), len(want))
	}
	for i, w := range want {
		p := all[i]
		if p.Name != w.name || p.Default.Milliseconds() != w.standard || p.Min.Milliseconds() != w.lowest ||
			p.Max.Milliseconds() != w.highest || p.InfiniteAllowed != w.infinite {
			t.Errorf("profile %d is %+v, want %+v", i, p, w)
		}
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
		if found, ok := Standard(w.name); !ok || found != p {
			t.Errorf("Standard(%q) = %+v, %v", w.name, found, ok)
		}
	}
}

func TestProfilesIsACopy(t *testing.T) {
	Profiles()[0].Max = time.Hour
	if p, _ := Standard(Heartbeat); p.Max != 30*time.Second {
		t.Errorf("a caller has changed %+v", p)
	}
}

func TestStandardUnknown(t *testing.T) {
	for _, name := range []string{"", "tool-call", "TOOL_CALL"} {
		if p, ok := Standard(name); ok {
			t.Errorf("Standard(%q) = %+v", name, p)
		}
	}
}

func TestValidateProfile(t *testing.T) {
	good := Profile{Name: "x", Default: 2, Min: 1, Max: 3}
	bad := map[string]Profile{
		"no name":       {Default: 2, Min: 1, Max: 3},
		"zero min":      {Name: "x", Default: 2, Max: 3},
		"negative min":  {Name: "x", Default: 2, Min: -1, Max: 3},
		"infinite max":  {Name: "x", Default: 2, Min: 1, Max: Infinite},
		"low default":   {Name: "x", Default: 1, Min: 2, Max: 3},
		"high default":  {Name: "x", Default: 4, Min: 2, Max: 3},
		"max under min": {Name: "x", Default: 2, Min: 3, Max: 1},
	}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for name, p := range bad {
		if p.Validate() == nil {
			t.Errorf("%s: %+v is accepted", name, p)
		}
	}
}
