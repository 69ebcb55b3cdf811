package conformance

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/plugin"
)

type sayInput struct {
	Text string `json:"text"`
	// Fail makes it an error, Work has it go on until it is told to end, Flood
	// sends without end.
	Fail  bool `json:"fail,omitempty"`
	Work  bool `json:"work,omitempty"`
	Flood bool `json:"flood,omitempty"`
}

type sayOutput struct {
	Length int `json:"length"`
}

func serveHealthy() {
	plugin.Serve(plugin.NewTool(plugin.Tool{Name: "say", Description: "Says it."}, say))
}

func say(ctx context.Context, in sayInput, out *plugin.Output) (sayOutput, error) {
	if in.Fail {
		return sayOutput{}, fmt.Errorf("cannot say %s", in.Text)
	}
	if err := out.Text(in.Text); err != nil {
		return sayOutput{}, err
	}
	if err := out.Flush(ctx); err != nil {
		return sayOutput{}, err
	}
	for in.Flood && ctx.Err() == nil {
		if err := out.Text(strings.Repeat("flood ", 10_000)); err != nil {
			return sayOutput{}, err
		}
	}
	if in.Work {
		<-ctx.Done()
		return sayOutput{}, context.Cause(ctx)
	}
	return sayOutput{len(in.Text)}, nil
}

const healthyCases = `
cases:
  - {args: {text: hello}, text: hello}
  - {args: {text: it, fail: true}, expect: error, text: cannot say it}
  - {args: {}, expect: error}
  - {name: work, args: {text: busy, work: true}, long: true, partial: true}
  - {name: flood, args: {text: busy, flood: true}, long: true, partial: true}
`

func TestAHealthyPluginPassesEverything(t *testing.T) {
	t.Parallel()
	r := try(t, newHost(t), healthyCases, "healthy")
	if len(r.Checks) != 9+12 || r.Count(Pass) != len(r.Checks) || len(r.SHA256) != 64 {
		t.Errorf("%d of %d checks passed, sha256 %q", r.Count(Pass), len(r.Checks), r.SHA256)
	}
	show(t, r)
}

// A case whose arguments a host would refuse must not be left out in silence.
func TestACaseThatDoesNotFitFails(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ one, want string }{
		{"{name: bad, args: {text: 3}}", "bad: its arguments do not fit the input schema: text: "},
		{"{name: bad, args: {text: 3}, long: true}", "bad: its arguments do not fit the input schema: text: "},
		{"{name: bad, args: {text: 3}, expect: error}", ""},
	} {
		r := try(t, newHost(t), "cases: [{args: {text: hello}}, "+test.one+"]", "healthy")
		for _, c := range r.Checks {
			if fails := c.ID == ruleCases.id && test.want != ""; (c.Status == Fail) != fails || fails && !strings.HasPrefix(c.Detail, test.want) {
				t.Errorf("%s: %+v", test.one, c)
			}
		}
	}
}

// Without cases nothing is claimed that was not tried.
func TestWhatCannotBeTriedIsSkipped(t *testing.T) {
	t.Parallel()
	r := try(t, newHost(t), "{}", "healthy")
	var skips []string
	for _, c := range r.Checks {
		if c.Status == Skip {
			skips = append(skips, c.ID)
		}
		if c.Status == Fail || c.Status == Warn {
			t.Errorf("%+v", c)
		}
	}
	if got := strings.Join(skips, " "); got != "cases cancel backpressure partial" {
		t.Errorf("skipped %s", got)
	}
	show(t, r)
}
