package conformance

import (
	"testing"
	"time"
)

// A driver has as long as its calls may take together.
func TestDriversHaveTheTimeOfTheirCalls(t *testing.T) {
	t.Parallel()
	calls := func(n int, timeout time.Duration) (list []call) {
		for range n {
			list = append(list, call{TimeoutMs: timeout.Milliseconds()})
		}
		return list
	}
	for name, test := range map[string]struct {
		calls []call
		least time.Duration
	}{
		"without calls":       {nil, driverTimeout},
		"the longest":         {calls(1, maxCaseTimeout), driverTimeout + maxCaseTimeout},
		"one, several times":  {calls(1, maxCaseTimeout), driverTimeout + atOnce*maxCaseTimeout},
		"two long ones":       {calls(2, 6*time.Minute), driverTimeout + 12*time.Minute},
		"as many as may be":   {calls(maxCases, caseTimeout), driverTimeout + maxCases*caseTimeout},
		"told to end, slowly": {calls(maxCases, 0), driverTimeout + 2*maxCases*(30*time.Second+defaultPatience)},
	} {
		j := &job{Calls: test.calls, GraceMs: 30_000, PatienceMs: defaultPatience.Milliseconds()}
		if got := j.timeout(); got < test.least {
			t.Errorf("%s: %s, want at least %s", name, got, test.least)
		}
	}
}
