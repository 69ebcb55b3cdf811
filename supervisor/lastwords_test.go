package supervisor

import (
	"testing"

	"github.com/toolhost/toolhost/api"
)

// No line is made of the halves of two, whose rest was dropped.
func TestLastWordsAreALine(t *testing.T) {
	t.Parallel()
	for want, stderr := range map[string]api.StreamOutput{
		"":             {},
		"second":       {Head: "first\nsec", Tail: "ond\n"},
		"panic: first": {Head: "panic: fi", Tail: "rst\nlast\n"},
		"panic: begun": {Head: "panic: begun", Tail: "of another\n", DroppedBytes: 1},
		"of another":   {Head: "begun", Tail: "of another\n", DroppedBytes: 1},
		"begun":        {Head: "begun", DroppedBytes: 1},
	} {
		if got := lastWords(stderr); got != want {
			t.Errorf("%+v: %q, want %q", stderr, got, want)
		}
	}
}
