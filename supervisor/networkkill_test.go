package supervisor_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/lab"
	"github.com/toolhost/toolhost/internal/testenv/stage"
	"github.com/toolhost/toolhost/supervisor"
)

// A tool that sends as fast as it can makes no other call's kill much later. On a
// machine that is busy with other things the figures are only shown.
func TestAFloodDelaysNoKill(t *testing.T) {
	stage.Of(t, "networkload")
	l := lab.Run(t)
	if l == nil {
		return
	}
	const kills, most, busy = 40, 2 * time.Millisecond, 2.0
	load := machineLoad(t)
	host := newHost(t, supervisor.Config{})
	victim := func() time.Duration {
		r := request("wait", `{}`)
		r.Timeouts, r.Grace = within(150*time.Millisecond), -1
		result := call(t, host, r)
		wantStatus(t, result, api.StatusTimeout)
		return time.Duration(result.Kill.TermLatencyUs+result.Kill.LatencyUs) * time.Microsecond
	}
	flood := func() testCall {
		r := reaching(t, l, with("a.test:2223", "203.0.113.10:2223"), "flood a.test:2223")
		r.Timeouts = within(time.Minute)
		return host.Start(t.Context(), r)
	}
	var calm, flooded []time.Duration
	for range kills / 10 {
		for range 10 {
			calm = append(calm, victim())
		}
		c := flood()
		for range 10 {
			flooded = append(flooded, victim())
		}
		c.Abort(api.ReasonUser)
		if f := flowOf(t, c.Result(), "a.test", lab.SinkPort); f.SentBytes < 10<<20 {
			t.Errorf("that was no flood: %+v", f)
		}
	}
	before, after := middle(calm), middle(flooded)
	t.Logf("deadline to the end of the last process, in the median of %d: %s, beside a flood %s; slowest %s, %s; load %.1f",
		kills, before, after, slices.Max(calm), slices.Max(flooded), load)
	if late := after - before; late > most && load < busy {
		t.Errorf("beside a flood kills are %s later", late)
	}
}

func middle(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}

// machineLoad is the load of the last minute.
func machineLoad(t *testing.T) float64 {
	t.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	load, err := strconv.ParseFloat(strings.Fields(string(text))[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	return load
}
