package worker

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// uptime is the time since the machine's boot, its sleep included: it never jumps, and is
// what leases are measured by.
func uptime() (time.Duration, error) {
	raw, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return 0, fmt.Errorf("cannot read the machine's uptime: %w", err)
	}
	first, _, _ := strings.Cut(string(raw), " ")
	d, err := time.ParseDuration(strings.TrimSpace(first) + "s")
	if err != nil {
		return 0, fmt.Errorf("cannot read the machine's uptime: %w", err)
	}
	return d, nil
}
