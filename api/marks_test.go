package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
)

func TestPhases(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(100, 0).Add(time.Duration(ms) * time.Millisecond) }
	zero := at(0)
	for name, c := range map[string]struct {
		marks api.Marks
		want  string
	}{
		"nothing": {api.Marks{}, ""},
		"a whole call": {
			api.Marks{Queued: at(0), Admitted: at(1), Spawned: at(3), Executed: at(6), Ready: at(9), Stop: at(20), Kill: at(20), Empty: at(22), Done: at(23)},
			"queue 0-1, start 1-9, start/birth 1-3, start/sandbox 3-6, start/handshake 6-9, run 9-20, kill 20-22, finish 22-23",
		},
		"a kept process": {
			api.Marks{Queued: at(0), Admitted: at(1), Ready: at(1), Stop: at(2), Empty: at(2), Done: at(3)},
			"queue 0-1, start 1-1, run 1-2, kill 2-2, finish 2-3",
		},
		"refused": {api.Marks{Queued: at(0), Done: at(4)}, "queue 0-4"},
		"killed in its sandbox": {
			api.Marks{Queued: at(0), Admitted: at(0), Spawned: at(2), Stop: at(5), Kill: at(5), Empty: at(6), Done: at(6)},
			"queue 0-0, start 0-5, start/birth 0-2, start/sandbox 2-5, kill 5-6, finish 6-6",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range c.marks.Phases() {
				of := ""
				if p.Of != "" {
					of = p.Of + "/"
				}
				got = append(got, fmt.Sprintf("%s%s %d-%d", of, p.Name, p.From.Sub(zero).Milliseconds(), p.To.Sub(zero).Milliseconds()))
			}
			if text := strings.Join(got, ", "); text != c.want {
				t.Errorf("got  %s\nwant %s", text, c.want)
			}
		})
	}
}
