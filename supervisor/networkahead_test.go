package supervisor_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/lab"
	"github.com/toolhost/toolhost/internal/testenv/processes"
	"github.com/toolhost/toolhost/supervisor"
)

// waiting is a request whose processes ask for a.test as they begin, and can be found by
// the mark.
func waiting(t *testing.T, l *lab.Lab) (r supervisor.Request, mark string) {
	t.Helper()
	_, mark = marked(t, "reach", 1)
	r = reaching(t, l, with("a.test:2222"), "early", "echo a.test:2222 x")
	r.Env, r.Prestart = append(r.Env, mark, "LAB_EARLY=echo a.test:2222 early"), 1
	return r, mark
}

// awaitQuery waits until a process that waits has sent a query, which nobody has read.
func awaitQuery(t *testing.T, mark string) {
	t.Helper()
	eventually(t, "the process has asked for a name", func() bool {
		return slices.ContainsFunc(processes.WithEnvironment(mark), func(pid int) bool {
			table, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/udp", pid))
			for line := range strings.Lines(string(table)) {
				f := strings.Fields(line)
				if len(f) > 4 && f[1] == "3500007F:0035" && !strings.HasSuffix(f[4], ":00000000") {
					return true
				}
			}
			return false
		})
	})
}

// A process that waits for its call reaches nothing before; then it is served, and all
// of it is the call's.
func TestAPrestartedProcessReachesNothingBeforeItsCall(t *testing.T) {
	l := lab.Run(t)
	if l == nil {
		return
	}
	host := newHost(t, supervisor.Config{})
	r, mark := waiting(t, l)
	host.Prestart([]supervisor.Request{r})
	for range 3 {
		awaitParked(t, host, 1)
		awaitQuery(t, mark)
		before := l.Queries("a.test")
		result := call(t, host, r)
		wantServed(t, result, api.InstancePrestarted, 0)
		if got := said(result); len(got) < 2 || got[0] != "ready early<nil>" || got[1] != "ready x" {
			t.Errorf("%q", got)
		}
		if f := flowOf(t, result, "a.test", lab.EchoPort); f.Connections != 2 || result.Network.Shared {
			t.Errorf("%+v, of %+v", f, result.Network)
		}
		if before != 0 && l.Queries("a.test") == before {
			t.Errorf("%d queries before the call, and none in it", before)
		}
	}
}

// What waits, and ends without a call, leaves no socket of its network.
func TestANetworkThatNobodyTook(t *testing.T) {
	l := lab.Run(t)
	if l == nil {
		return
	}
	host := newHost(t, supervisor.Config{})
	r, mark := waiting(t, l)
	var before int
	const rounds = 5
	for n := range rounds {
		host.Prestart([]supervisor.Request{r})
		awaitParked(t, host, 1)
		awaitQuery(t, mark)
		if l.Queries("a.test") != 0 {
			t.Fatal("a process that waits has looked a name up")
		}
		host.Prestart(nil)
		eventually(t, "nothing waits", func() bool { return len(processes.WithEnvironment(mark)) == 0 })
		if n == 0 { // what is needed once is there
			before = needsOf(t, os.Getpid()).descriptors
		}
	}
	// What one round left, each would; what a host opens once it may open later.
	eventually(t, "no descriptor is left", func() bool { return needsOf(t, os.Getpid()).descriptors < before+rounds-1 })
}
