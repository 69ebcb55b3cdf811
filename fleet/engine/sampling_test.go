package engine

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server/pse"
)

// Each toolhost process has the server in it, and most of them only wait.
func TestTheProcessIsNotSampled(t *testing.T) {
	var (
		cpu      float64
		rss, vss int64
	)
	if err := pse.ProcUsage(&cpu, &rss, &vss); err == nil {
		t.Error("the server still reads /proc/PID/stat, each second")
	}
}
