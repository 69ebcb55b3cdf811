package supervisor

import (
	"testing"
	"time"

	"github.com/toolhost/toolhost/budget"
)

// A Describe takes no longer than the call that needs it. How long the operator
// lets calls of what is behind an adapter work says nothing of its start, which
// may be given time of its own.
func TestDescribeTimeout(t *testing.T) {
	config := Config{}
	if err := config.complete(); err != nil {
		t.Fatal(err)
	}
	profile, _ := budget.Standard(budget.MessageRoute)
	entry := budget.Ask{Layer: budget.LayerGlobal, Rank: budget.RankTool, Timeout: 3 * time.Second}
	flag := budget.Ask{Layer: budget.LayerGlobal, Rank: budget.RankFlag, Timeout: 4 * time.Second}
	call := budget.Ask{Layer: budget.LayerCall, Timeout: 5 * time.Second}
	client := budget.Ask{Layer: budget.LayerClient, TimeoutUnset: true, Max: 25 * time.Second}
	for name, test := range map[string]struct {
		tool Tool
		asks []budget.Ask
		want time.Duration
	}{
		"a plugin":                        {Tool{}, nil, 10 * time.Second},
		"a plugin with a timeout":         {Tool{}, []budget.Ask{entry}, 3 * time.Second},
		"an adapter":                      {Tool{Adapter: true}, nil, 10 * time.Second},
		"an adapter with a timeout":       {Tool{Adapter: true}, []budget.Ask{entry}, 10 * time.Second},
		"a slow server":                   {Tool{Adapter: true, DescribeTimeout: 57 * time.Second}, nil, 57 * time.Second},
		"a slow server with a timeout":    {Tool{Adapter: true, DescribeTimeout: 57 * time.Second}, []budget.Ask{entry}, 57 * time.Second},
		"a slow server for one call":      {Tool{Adapter: true, DescribeTimeout: 22 * time.Second}, []budget.Ask{entry, call}, 5 * time.Second},
		"a slow server for a client":      {Tool{Adapter: true, DescribeTimeout: 57 * time.Second}, []budget.Ask{entry, client}, 25 * time.Second},
		"a slow server by a flag":         {Tool{Adapter: true, DescribeTimeout: 22 * time.Second}, []budget.Ask{entry, flag}, 4 * time.Second},
		"a server with little time":       {Tool{Adapter: true, DescribeTimeout: 5 * time.Second}, []budget.Ask{entry}, 5 * time.Second},
		"more than any Describe may take": {Tool{Adapter: true, DescribeTimeout: time.Hour}, nil, time.Minute},
	} {
		s := &Supervisor{config: config}
		asked := s.describeTimeout(Request{Tool: test.tool, Timeouts: test.asks}, profile)
		if got := budget.Resolve(profile, asked...).Timeout; got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
