package main

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/turn/format"
)

// Whatever ids an API gives, a turn gets short ones, each its own; those that
// it can take stay as they are.
func TestTurnCalls(t *testing.T) {
	long := strings.Repeat("é", 200)
	calls := turnCalls([]format.Call{{ID: "a"}, {ID: long}, {ID: long + "2"}, {ID: strings.Repeat("é", 32) + "…2"}, {ID: strings.Repeat("x", maxTurnID)}})
	seen := map[string]bool{}
	for i, c := range calls {
		if c.ID == "" || len(c.ID) > maxTurnID || seen[c.ID] || strings.ToValidUTF8(c.ID, "") != c.ID {
			t.Errorf("call %d has the id %q", i+1, c.ID)
		}
		seen[c.ID] = true
	}
	if calls[0].ID != "a" || len(calls[4].ID) != maxTurnID {
		t.Errorf("ids %q and %q have changed", calls[0].ID, calls[4].ID)
	}
}
