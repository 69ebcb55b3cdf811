package budget

import (
	"strings"
	"testing"
)

// A hint beyond all bounds is not told as if it had been asked for to the hour.
func TestWarningOfHugeHint(t *testing.T) {
	profile, _ := Standard(ToolCall)
	for meta, want := range map[string]string{`{"timeout":1e99}`: "2562047h or more asked by", `{"timeout":-1e99}`: "-2562047h or less asked by"} {
		hint, _, err := Hint(nil, []byte(meta), "")
		if err != nil {
			t.Fatal(err)
		}
		r := Resolve(profile, hint.Asks()...)
		if got := strings.Join(r.Warnings, "\n"); !strings.Contains(got, want) {
			t.Errorf("%s: %q", meta, got)
		}
	}
}
