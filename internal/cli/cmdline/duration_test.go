package cmdline

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"10": 10 * time.Second, "0": 0, "0.5": 500 * time.Millisecond, ".5": 500 * time.Millisecond, "5.": 5 * time.Second, "+3": 3 * time.Second, "-3": -3 * time.Second,
		"10s": 10 * time.Second, "200ms": 200 * time.Millisecond, "1h30m": 90 * time.Minute, "1d": 24 * time.Hour, "0.5d": 12 * time.Hour, "007": 7 * time.Second, "2562047h": 2562047 * time.Hour,
	} {
		if got, err := parseDuration(text); err != nil || got != want {
			t.Errorf("%q: %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", " ", "10 ", "ten", "1e3", "0x10", "1_0", "NaN", "inf", "infinity", "10x", "1d2h", ".", "d", "99999999999", "-99999999999", strings.Repeat("9", 400)} {
		if got, err := parseDuration(text); err == nil {
			t.Errorf("%q is taken for %s", text, got)
		}
	}
}

func TestDurationFlag(t *testing.T) {
	var limit, since time.Duration
	cmd := &cobra.Command{Use: "x", SilenceErrors: true, SilenceUsage: true, Run: func(*cobra.Command, []string) {}}
	DurationVar(cmd.Flags(), &limit, "limit", 0, "limit")
	DurationVar(cmd.Flags(), &since, "since", time.Minute, "since")
	cmd.SetFlagErrorFunc(FlagError)
	if help := cmd.UsageString(); !strings.Contains(help, "--limit duration   limit\n") || !strings.Contains(help, "since (default 1m0s)") {
		t.Errorf("help is %q", help)
	}
	cmd.SetArgs([]string{"--limit", "10"})
	if err := cmd.Execute(); err != nil || limit != 10*time.Second || since != time.Minute {
		t.Errorf("%s, %s, %v", limit, since, err)
	}
	cmd.SetArgs([]string{"--limit=soon"})
	const want = `--limit "soon" is not a duration: give a number of seconds, or one with its unit, such as 30s, 5m or 1h30m`
	if err := cmd.Execute(); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
