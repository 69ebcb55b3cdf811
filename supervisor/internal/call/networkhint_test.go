package call

import (
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
)

// What the network has refused is said in one line: as what to do next where that may be
// why a call failed, as a note where it ended well, and nowhere else.
func TestWhatTheNetworkRefused(t *testing.T) {
	name := api.NetworkRefusal{Name: "b.test", Why: api.NotGranted}
	host := api.NetworkRefusal{Name: "a.test", Port: 80, Why: "the HTTP host is b.test"}
	const remedy = ": if the call may reach that, have the operator grant it (--net b.test, or network: [\"b.test\"] in toolhost.yaml)"
	for what, test := range map[string]struct {
		status     api.Status
		refused    []api.NetworkRefusal
		note, hint string
	}{
		"ok":                     {api.StatusOK, []api.NetworkRefusal{name}, "the network refused b.test (not granted)" + remedy, "before"},
		"ok, of several":         {api.StatusOK, []api.NetworkRefusal{host, name}, "the network refused b.test (and 1 more) (not granted)" + remedy, "before"},
		"ok, what no grant lets": {api.StatusOK, []api.NetworkRefusal{host}, "the network refused a.test port 80 (the HTTP host is b.test)", "before"},
		"too late":               {api.StatusTimeout, []api.NetworkRefusal{name}, "", "before, or: the network refused b.test (not granted)" + remedy},
		"failed":                 {api.StatusToolError, []api.NetworkRefusal{name}, "", "before, or: the network refused b.test (not granted)" + remedy},
		"failed with no remedy":  {api.StatusToolError, []api.NetworkRefusal{host}, "", "before"},
		"cancelled":              {api.StatusCancelled, []api.NetworkRefusal{name}, "", "before"},
		"ok, nothing refused":    {api.StatusOK, nil, "", "before"},
	} {
		r := &api.Result{Status: test.status}
		r.Retry.Hint, r.Network = "before", &api.Network{Refused: test.refused}
		hintAtNetwork(r)
		if note := strings.Join(r.Warnings, "\n"); note != test.note || r.Retry.Hint != test.hint || r.Status != test.status {
			t.Errorf("%s: note %q, hint %q", what, note, r.Retry.Hint)
		}
	}
	many := &api.Result{Status: api.StatusOK}
	many.Network = &api.Network{Refused: slices.Repeat([]api.NetworkRefusal{name}, api.MaxNetworkEntries)}
	if hintAtNetwork(many); len(many.Warnings) != 1 || strings.Contains(many.Warnings[0], "\n") || len(many.Warnings[0]) > 1<<10 {
		t.Errorf("%q", many.Warnings)
	}
	hintAtNetwork(&api.Result{Status: api.StatusOK})
}

// A call without a network that has failed for want of one says so, by the error or by
// stderr; one that has a network, or fails for another reason, does not.
func TestNoNetwork(t *testing.T) {
	const unreached = "getaddrinfo EAI_AGAIN api.example"
	for what, test := range map[string]struct {
		status            api.Status
		mode, said, error string
		hints             bool
	}{
		"by its error":  {api.StatusToolError, "none", "", unreached, true},
		"by its stderr": {api.StatusToolError, "none", "curl: (6) Could not resolve host: api.example", "exit status 6", true},
		"has one":       {api.StatusToolError, "host", "", unreached, false},
		"other words":   {api.StatusToolError, "none", "no such file", "it failed", false},
		"ended well":    {api.StatusOK, "none", unreached, "", false},
	} {
		r := &api.Result{Status: test.status, ToolError: &api.ToolError{Message: test.error}}
		r.Network = &api.Network{Mode: test.mode}
		r.Output.Stderr.Head = test.said
		if hintAtNetwork(r); strings.HasPrefix(r.Retry.Hint, api.NoNetwork+": ") != test.hints {
			t.Errorf("%s: %q", what, r.Retry.Hint)
		}
	}
}
