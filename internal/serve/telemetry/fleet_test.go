package telemetry

import (
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// What is known of a fleet: its workers by state, how long calls were placed, and
// which were lost.
func TestAFleetIsCounted(t *testing.T) {
	told := newTelemetry(t, Config{Load: func() Load {
		return Load{JournalBytes: -1, Refused: 5, Workers: []api.Worker{
			{Name: "a", State: "taking", Free: 3, Slots: 4}, {Name: "b", State: "taking", Slots: 2}, {Name: "c", State: "suspect", Free: 8, Slots: 8},
		}}
	}})
	lost := fine()
	lost.Result = supervisor.Verdict{Status: api.StatusLost, Reason: api.ReasonWorkerDied}.Result()
	lost.Result.Where = &api.Where{Worker: secretText, Attempt: 2, PlaceMs: 40}
	placed := fine()
	placed.Result.Where = &api.Where{Worker: secretText, Attempt: 1, PlaceMs: 2}
	told.Observe([]turn.Record{lost, placed, fine()})
	got := samples(t, told)
	for name, want := range map[string]float64{
		"toolhost_fleet_workers{state=taking}":          2,
		"toolhost_fleet_workers{state=draining}":        0,
		"toolhost_fleet_workers{state=suspect}":         1,
		"toolhost_fleet_slots{use=free}":                3,
		"toolhost_fleet_refused_messages_total{}":       5,
		"toolhost_fleet_slots{use=taken}":               3,
		"toolhost_fleet_place_seconds{} count":          2,
		"toolhost_fleet_place_seconds{} sum":            .042,
		"toolhost_fleet_lost_total{reason=worker_died}": 1,
		"toolhost_fleet_lost_total{reason=unreachable}": 0,
	} {
		if value, ok := got[name]; !ok || value < want-1e-9 || value > want+1e-9 {
			t.Errorf("%s is %v (%v), want %v", name, value, ok, want)
		}
	}
}
