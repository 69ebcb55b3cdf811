package supervisor_test

import (
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/lab"
	"github.com/toolhost/toolhost/supervisor"
)

// A call that ends at whatever moment of its start leaves nothing of its network, though
// that is there before the tool.
func TestANetworkOfAStartThatEnds(t *testing.T) {
	l := lab.Run(t)
	if l == nil {
		return
	}
	host := newHost(t, supervisor.Config{})
	wantStatus(t, call(t, host, reaching(t, l, with("a.test:2222"), "echo a.test:2222 x")), api.StatusOK)
	pid := relayPID(t)
	before := needsOf(t, pid)
	const spare = 4 // of two pipes that the relay keeps; a session left would have more
	statuses, networks := map[api.Status]int{}, 0
	for n := range 40 {
		r := reaching(t, l, with("a.test:2222"), "echo a.test:2222 x")
		r.Timeouts, r.Grace = within(time.Duration(n+1)*500*time.Microsecond), -1
		result := call(t, host, r)
		statuses[result.Status]++
		if result.Network != nil && result.Network.Mode == "grants" {
			networks++
		}
		if result.Network != nil && result.Network.Error != "" {
			t.Errorf("%s: %+v", result.Message, result.Network)
		}
	}
	t.Logf("%v, %d with a network", statuses, networks)
	eventually(t, "the relay has closed everything", func() bool { return needsOf(t, pid).descriptors <= before.descriptors+spare })
	wantStatus(t, call(t, host, reaching(t, l, with("a.test:2222"), "echo a.test:2222 x")), api.StatusOK)
}
