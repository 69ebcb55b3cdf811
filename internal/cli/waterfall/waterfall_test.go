package waterfall_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/cli/waterfall"
)

var zero = time.Unix(1_700_000_000, 0)

func phase(name, of string, from, to time.Duration) api.Phase {
	return api.Phase{Name: name, Of: of, From: zero.Add(from), To: zero.Add(to)}
}

const ms = time.Millisecond

var phases = []api.Phase{
	phase("open", "", 0, 12*ms),
	phase("start", "", 12*ms, 36*ms),
	phase("birth", "start", 12*ms, 12*ms+100*time.Microsecond),
	phase("sandbox", "start", 12*ms+100*time.Microsecond, 36*ms),
	phase("run", "", 36*ms, 48*ms),
	phase("finish", "", 48*ms, 48*ms),
}

func TestDraw(t *testing.T) {
	var b strings.Builder
	if err := waterfall.Draw(&b, phases); err != nil {
		t.Fatal(err)
	}
	want := `open           0.00 ms  12.00 ms  ████████████
start         12.00 ms  24.00 ms              ████████████████████████
  birth       12.00 ms   0.10 ms              ▏
  sandbox     12.10 ms  23.90 ms              ███████████████████████▉
run           36.00 ms  12.00 ms                                      ████████████
finish        48.00 ms   0.00 ms                                                 ▏
                        48.00 ms
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestDrawNothing(t *testing.T) {
	var b strings.Builder
	if err := waterfall.Draw(&b, nil); err != nil || b.Len() != 0 {
		t.Errorf("%q, %v", b.String(), err)
	}
	if err := waterfall.Draw(&b, []api.Phase{phase("open", "", 0, 0)}); err != nil || !strings.HasPrefix(b.String(), "open ") {
		t.Errorf("%q, %v", b.String(), err)
	}
}

func TestWrite(t *testing.T) {
	var b strings.Builder
	if err := waterfall.Write(&b, "execute_tool search", phases); err != nil {
		t.Fatal(err)
	}
	var trace struct {
		DisplayTimeUnit string
		TraceEvents     []struct {
			Name, Cat, Ph string
			Ts, Dur       float64
			Pid, Tid      int
			Args          map[string]string
		}
	}
	if err := json.Unmarshal([]byte(b.String()), &trace); err != nil {
		t.Fatal(err)
	}
	if len(trace.TraceEvents) != len(phases)+2 || trace.DisplayTimeUnit != "ms" || trace.TraceEvents[1].Args["name"] != "execute_tool search" {
		t.Fatalf("%+v", trace)
	}
	for i, e := range trace.TraceEvents[2:] {
		p := phases[i]
		at := float64(p.From.UnixMicro())
		if e.Name != p.Name || e.Ph != "X" || e.Ts != at || e.Dur != float64(p.To.Sub(p.From).Microseconds()) || e.Pid != 1 || e.Tid != 1 {
			t.Errorf("%+v of %+v", e, p)
		}
	}
}

type full struct{}

var errFull = errors.New("no space left on device")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriteErrors(t *testing.T) {
	if err := waterfall.Draw(full{}, phases); !errors.Is(err, errFull) {
		t.Error(err)
	}
	if err := waterfall.Write(full{}, "x", phases); !errors.Is(err, errFull) {
		t.Error(err)
	}
}
