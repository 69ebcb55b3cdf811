//go:build !race

package main

import (
	"strings"
	"testing"
)

// The race detector maps more memory for itself than such a call may have.
func TestRlimitsWithoutACgroup(t *testing.T) {
	t.Parallel()
	needRange(t)
	dir := userDir(t)
	for want, script := range map[string]string{
		"fork":   "i=0; while [ $i -lt 60 ]; do sleep 1000 & i=$((i+1)); done; kill %1",
		"memory": `exec awk 'BEGIN { s = "x"; while (length(s) < 1e9) s = s s }'`,
	} {
		stdout, stderr, code := asOutsider(t, dir, "exec", "--unsafe-no-cgroup", "--pids", "4", "--memory", "64MiB", "--timeout", "1m", "--", "sh", "-c", script)
		if code != 2 || !strings.Contains(stderr[strings.Index(stderr, "\n"):], want) { // behind the warning
			t.Errorf("%s: exit status %d: %s%s", want, code, stdout, stderr)
		}
	}
}
