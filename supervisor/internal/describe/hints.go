package describe

import (
	"fmt"
	"time"

	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// maxHint is longer than anybody waits, and can be counted in nanoseconds.
const maxHint = 366 * 24 * time.Hour

// mendHints leaves out hints that cannot be a duration, and says which.
func mendHints(tool *pluginv1.ToolDescription) (warnings []string) {
	hints := tool.GetTimeouts()
	if hints == nil {
		return nil
	}
	for _, hint := range []struct {
		name string
		ms   *int64
	}{{"timeout", &hints.TimeoutMs}, {"soft budget", &hints.SoftBudgetMs}, {"gap", &hints.GapMs}} {
		if ms := *hint.ms; ms < 0 || ms > maxHint.Milliseconds() {
			warnings = append(warnings, fmt.Sprintf("tool %q goes without its hint of a %s: it is %d ms, want 0 to %d", tool.GetName(), hint.name, ms, maxHint.Milliseconds()))
			*hint.ms = 0
		}
	}
	return warnings
}
