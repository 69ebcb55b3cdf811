package turn

import (
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
)

// What is less than nothing, or no text, begins no turn.
func TestBadSpecsAreRefused(t *testing.T) {
	m := New(Config{})
	defer m.Close()
	for want, spec := range map[string]Spec{
		"MaxCalls is -1: must be positive, or 0 for 50":             {Budget: budget.TurnSpec{MaxCalls: -1}},
		"Deadline is -1ns: must be positive":                        {Budget: budget.TurnSpec{Deadline: -1}},
		"ToolTime is -1m0s: must be positive":                       {Budget: budget.TurnSpec{ToolTime: -time.Minute}},
		"StreamDuration is -1ns: must be positive, or 0 for 1m":     {Budget: budget.TurnSpec{StreamDuration: -1}},
		"Reserve is -2s: must be positive, NoReserve, or 0 for 10s": {Budget: budget.TurnSpec{Reserve: -2 * time.Second}},
		`"x\xff" is not UTF-8`:                                      {ID: "x\xff"},
		`"s\xff" is not UTF-8`:                                      {SessionID: "s\xff"},
		"timeout 0 is not allowed":                                  {Waits: map[api.InteractionKind]time.Duration{api.KindApproval: 0}},
	} {
		turn, err := m.Begin(spec)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if turn != nil {
			turn.End()
		}
	}
	turn, err := m.Begin(Spec{Budget: budget.TurnSpec{Reserve: budget.NoReserve}})
	if err != nil {
		t.Fatal(err)
	}
	defer turn.End()
	if err := CheckBatch([]Call{{ID: "a\xff"}}); err == nil || !strings.Contains(err.Error(), `the id "a\xff", which is not UTF-8`) {
		t.Error(err)
	}
}
