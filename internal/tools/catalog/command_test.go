package catalog

import (
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/tools/command"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

// Lines that are not JSON are told apart from those that are too long to be read.
func TestReaderWarnings(t *testing.T) {
	long := `"` + strings.Repeat("x", command.MaxLineBytes) + "\"\n"
	const limit = "longer than 256 KiB, the most that is read as JSON"
	const remedy = "[REDACTED] in the place of a secret, which is JSON in a string alone: have the tool write that as a string"
	for output, want := range map[string]string{
		"1\n":                    "",
		"x\n1\n":                 "1 line of stdout was not JSON, and is kept as text",
		"x\ny\n\"\xff\"\n":       "3 lines of stdout were not JSON, and are kept as text",
		"{\"pin\":[REDACTED]}\n": "1 line of stdout was not JSON, and is kept as text; it has " + remedy,
		"x\n[REDACTED]\n":        "2 lines of stdout were not JSON, and are kept as text; 1 of them has " + remedy,
		"[REDACTED]\n\"[REDACTED]\"\n{\"pin\":[REDACTED]}": "2 lines of stdout were not JSON, and are kept as text; 2 of them have " + remedy,
		long:                "1 line of stdout was " + limit + ", and is kept as text",
		"x\n" + long + long: "1 line of stdout was not JSON, and is kept as text; 2 lines of stdout were " + limit + ", and are kept as text",
	} {
		r := &reader{parser: command.NewParser(command.FormatNDJSON, maxJSONBytes)}
		r.Write([]byte(output))
		if _, _, err := r.End(); err != nil || r.Warning() != want {
			t.Errorf("%.20q: %v, %q, want %q", output, err, r.Warning(), want)
		}
	}
}

// A server without a sandbox is granted the whole file system.
func TestRoots(t *testing.T) {
	for _, c := range []struct {
		policy *supervisor.Policy
		want   []string
	}{
		{nil, nil},
		{&supervisor.Policy{Read: []string{"/r"}, Write: []string{"/w"}}, []string{"/w", "/r"}},
		{&supervisor.Policy{Tier: sandbox.TierNone}, []string{"/"}},
	} {
		if got := roots(c.policy); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.policy, got, c.want)
		}
	}
}
