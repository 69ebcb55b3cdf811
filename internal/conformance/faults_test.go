package conformance

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/internal/testenv/stage"
)

const brokenCases = `
cases:
  - {args: {text: hello}, text: hello, timeout: 5s}
  - {name: work, args: {text: busy, work: true}, long: true, partial: true}
`

const floodCase = `
  - {name: flood, args: {text: busy, flood: true}, long: true}
`

// faults are what the suite must find: the rule that each breaks, and nothing
// else.
var faults = []struct {
	fault  string
	rule   rule
	status Status
	detail string // part of what it says
}{
	{"version", ruleHandshake, Fail, `protocol version "99"`},
	{"early", ruleHandshake, Fail, `it wrote "Loading the model ..."`},
	{"mute", ruleHandshake, Fail, "no handshake within 3s"},
	{"litter", ruleHandshake, Fail, "2 entries in the socket folder"},
	{"runs-by-hand", ruleByHand, Fail, "still ran after 3s"},
	{"traceback-by-hand", ruleByHand, Warn, `a stack trace: "KeyError: 'PLUGIN_UNIX_SOCKET_DIR'"`},
	{"silent-by-hand", ruleByHand, Warn, "exited with status 0"},
	{"fickle", ruleDescribe, Fail, "differently a second time: version"},
	{"empty", ruleDescribe, Fail, "describes 0 tools"},
	{"hangs", ruleDescribe, Fail, "no answer within 3s"},
	{"duplicate", ruleNames, Fail, `two tools are named "say"`},
	{"name", ruleNames, Fail, `the name "say it"`},
	{"reserved", ruleNames, Fail, "belongs to hosts"},
	{"wordy", ruleAlone, Warn, "its title is cut"},
	{"nameless", ruleNames, Warn, "say has no description"},
	{"schema", ruleSchemas, Fail, "its input schema: "},
	{"schema-list", ruleSchemas, Fail, "its type is array, not object"},
	{"schema-output", ruleSchemas, Fail, "its output schema: no JSON object"},
	{"claims", ruleClaims, Fail, "both read-only and destructive"},
	{"timeout-argument", ruleClaims, Fail, `"timeout_ms" is not an integer`},
	{"unimplemented", ruleReplies, Fail, "Acknowledge of an unknown call: "},
	{"any-tool", ruleUnknown, Fail, "the tool no_such_tool succeeded"},
	{"other-tool", ruleUnknown, Fail, `no_such_tool came to error "no text"`},
	{"two-results", ruleStream, Fail, "a second result"},
	{"after-result", ruleStream, Fail, "data after the result"},
	{"no-result", ruleStream, Fail, "without a result"},
	{"seq", ruleStream, Fail, "event 2 came after event 0"},
	{"dies", ruleStream, Fail, "ended before its result: exit status 3"},
	{"describes-or-calls", ruleStream, Fail, "in a process that has described itself: the process ended before its result: exit status 3"},
	{"wrong", ruleCases, Fail, `it should succeed and came to error "no"`},
	{"structured", ruleStructured, Fail, `{"length":"long"}`},
	{"unstructured", ruleStructured, Fail, "returned no structured result"},
	{"prints", ruleQuiet, Warn, `it printed "x`},
	{"daemon", ruleLeftovers, Fail, "1 process left behind: exe"},
	{"alone-only", ruleTogether, Fail, "busy"},
	{"crash", ruleArguments, Fail, "no JSON: the process ended: exit status 2; on stderr: panic: unexpected end"},
	{"status", ruleArguments, Fail, "gRPC status InvalidArgument"},
	{"deaf", ruleCancel, Fail, "Cancel: still running after "},
	{"cancel-breaks", ruleCancel, Fail, "after Cancel: the stream ended without a result"},
	{"signal-breaks", ruleCancel, Fail, "after SIGTERM: data after the result"},
	{"exits-when-told", ruleCancel, Warn, "there is no result of it"},
	{"unacknowledged", ruleFlush, Fail, "nothing came after its Flush was acknowledged"},
	{"impatient", ruleFlush, Warn, "ended though its Flush was not acknowledged"},
	{"hoards", ruleBackpressure, Fail, "its memory grew by"},
	{"neighbours", ruleSupervised, Fail, "tool_error: alone"},
	{"keeps-back", rulePartial, Fail, "nothing had come when its time was over"},
}

// Nearly all of the time is waiting, so many are tried at once.
func TestEachFaultIsNamed(t *testing.T) {
	stage.Whole(t)
	t.Parallel()
	host := newHost(t)
	slots := make(chan struct{}, 4)
	reports := make([]*Report, len(faults))
	var done sync.WaitGroup
	for i, test := range faults {
		done.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			cases := brokenCases
			if test.fault == "hoards" {
				cases += floodCase
			}
			patience := time.Minute
			if slices.Contains([]string{"mute", "runs-by-hand", "hangs"}, test.fault) {
				patience = 3 * time.Second
			}
			reports[i] = tryWith(t, host, patience, cases, "broken", test.fault)
		})
	}
	done.Wait()
	for i, test := range faults {
		t.Run(test.fault, func(t *testing.T) { wantOnly(t, reports[i], test.rule, test.status, test.detail) })
	}
}

// wantOnly wants one rule broken, in words that name the fault.
func wantOnly(t *testing.T, r *Report, rule rule, status Status, detail string) {
	t.Helper()
	found := false
	for _, c := range r.Checks {
		switch {
		case c.ID == rule.id && c.Status == status:
			found = true
			if !strings.Contains(c.Detail, detail) || c.Fix == "" || strings.Contains(c.Detail, "\n") {
				t.Errorf("%s says %q, want %q in it, and a fix %q", c.ID, c.Detail, detail, c.Fix)
			}
		case c.Status == Fail || c.Status == Warn:
			t.Errorf("%s %s, too: %s", c.ID, c.Status, c.Detail)
		}
	}
	if !found {
		t.Errorf("%s is not %s", rule.id, status)
	}
	if t.Failed() {
		show(t, r)
	}
}

// The same plugin without a fault: what the others fail of is theirs.
func TestASoundPluginWithoutTheSDK(t *testing.T) {
	t.Parallel()
	r := try(t, newHost(t), brokenCases+floodCase, "broken", "none")
	for _, c := range r.Checks {
		if c.Status != Pass && c.ID != ruleFlush.id {
			t.Errorf("%s %s: %s", c.ID, c.Status, c.Detail)
		}
	}
}

func TestAPluginThatNeedsFilesToDescribeItself(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "tools.json")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r := try(t, newHost(t), brokenCases+"sandbox: {read: ["+dir+"]}\n", "broken", "needs-files", file)
	for _, c := range r.Checks {
		if c.Status == Fail && c.ID != ruleAlone.id && c.ID != ruleSupervised.id && c.ID != rulePartial.id {
			t.Errorf("%s: %s", c.ID, c.Detail)
		}
	}
	if got := r.Failed(); len(got) == 0 || got[0] != ruleAlone.id {
		t.Errorf("failed %q", got)
	}
}
