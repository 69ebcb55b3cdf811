package fleet_test

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/fleet"
)

// Output that this machine would have kept in a file, and a worker does not, is lost with a
// warning.
func TestAWorkerSpillsNothing(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, func(c *fleet.Config) { c.Supervisor.SpillDir = t.TempDir() }, "w1")
	w.work("w1", nil)
	for script, want := range map[string]bool{"head -c 3000000 /dev/zero >&2": true, "echo short": false} {
		got := w.call(shell(script))
		if warned := strings.Contains(strings.Join(got.Warnings, "\n"), "workers write no spill files"); !got.OK() || warned != want {
			t.Errorf("%s: %s %q", script, got.Message, got.Warnings)
		}
	}
}
