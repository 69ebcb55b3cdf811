package telemetry

import (
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/turn"
)

// What a call costs, after its caller has been answered.
func BenchmarkObserve(b *testing.B) {
	records := []turn.Record{{Record: api.Record{Event: api.Event{Kind: api.EventTurnStart}}}, {Record: api.Record{Event: api.Event{Kind: "tool_started"}}}, fine()}
	for name, export := range map[string]Export{"scraped": {}, "sent": {Endpoint: "http://127.0.0.1:1"}} {
		b.Run(name, func(b *testing.B) {
			told, err := New(Config{Known: isKnown, Load: func() Load { return Load{} }, Export: export})
			if err != nil {
				b.Fatal(err)
			}
			defer told.Close()
			b.ReportAllocs()
			for b.Loop() {
				told.Observe(records)
			}
		})
	}
}
