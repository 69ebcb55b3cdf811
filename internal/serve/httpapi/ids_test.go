package httpapi

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
)

// Whatever id a batch may have, its call can be stopped, and its result read.
func TestEveryIDCanBeAddressed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	turnID := w.begin(api.TurnSpec{TurnID: "t"})
	ids := []string{"../x", "..//../x", "a//b", "a/./b", "/", "//", "x/", "./", "https://x/1", "%2F", "%2e%2e", "?", "#", ";a=b", " ", "é/\n", `\`, "...", "abort"}
	var calls []api.Call
	for _, id := range ids {
		calls = append(calls, callOf(id, "work", fakeArgs{Hold: true}))
	}
	done := w.runLater(w.ctx(), turnID, calls...)
	for _, id := range ids {
		w.fakes.await(t, id, true)
		if status, body := w.raw("POST", "/api/turns/t/abort-tool/"+url.PathEscape(id), ""); status != 200 {
			t.Errorf("abort of %q: %d %s", id, status, body)
			w.fakes.await(t, id, true).Abort(api.ReasonUser)
		}
	}
	ran := w.wait(done)
	if ran.err != nil || len(ran.results) != len(ids) {
		t.Fatal(ran.err)
	}
	for i, id := range ids {
		if r := ran.results[i]; r.CallID != id || r.Status != api.StatusCancelled {
			t.Errorf("%q: %s %s", id, r.CallID, r.Status)
		}
		past, err := w.client.PastResult(w.ctx(), turnID, id)
		if err != nil || past.CallID != id {
			t.Errorf("the result of %q on record: %v", id, err)
		}
	}
}

// What is wrong with a batch is said with its place, the value and the rule.
func TestBrokenRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.begin(api.TurnSpec{TurnID: "t"})
	for body, want := range map[string][]string{
		`{"calls":[{"id":"ok","tool":"work"},{"id":"..","tool":"work"}]}`:               {`calls[1].id`, `".."`, `pattern ^([^.]|[.][^.]|[.][.].)`},
		`{"calls":[{"id":"","tool":"work"}]}`:                                           {`calls[0].id`, `at least 1 `, `""`},
		`{"calls":[{"id":"` + strings.Repeat("x", 300) + `","tool":"work"}]}`:           {`calls[0].id`, `at most 128 `, `300`},
		`{"calls":[{"id":"1","tool":"work"},{"id":"2"}]}`:                               {`calls[1]`, `"tool"`},
		`{"calls":[{"id":"1","tool":"work"},{"id":"2","tool":7}]}`:                      {`calls[1].tool`, `string`, `7`},
		`{"calls":[{"id":"1","tool":"work"},{"id":"2","tool":"work","argument":{}}]}`:   {`calls[1]`, `"argument"`},
		`{"calls":[{"id":"1","tool":"work"},{"id":"2","tool":"work","arguments":"x"}]}`: nil, // the call's own matter
	} {
		status, answer := w.raw("POST", "/api/turns/t/calls", body)
		if (status == 400) != (want != nil) {
			t.Errorf("%.80s: %d %s", body, status, answer)
		}
		says(t, answer, want)
	}
	for body, want := range map[string][]string{
		`{"turnId":null}`: {"turnId", "string", "null"},
		`{"maxCalls":-1}`: {"maxCalls", "at least 0", "-1"},
		`{"agentId":5}`:   {"agentId", "string", "5"},
		`{"x":5}`:         {`"x"`},
	} {
		status, answer := w.raw("POST", "/api/turns", body)
		if status != 400 {
			t.Errorf("%s: %d", body, status)
		}
		says(t, answer, want)
	}
}

func says(t *testing.T, answer string, want []string) {
	t.Helper()
	plain := strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(answer)
	if slices.ContainsFunc(want, func(part string) bool { return !strings.Contains(plain, part) }) {
		t.Errorf("%s says nothing of one of %q", answer, want)
	}
	for _, odd := range []string{"reflect", "$defs", "less than", "/1 "} {
		if strings.Contains(plain, odd) {
			t.Errorf("%s speaks of %s", answer, odd)
		}
	}
}

// No turn has the id of a fixed path beside those of turns: it could not be read.
func TestFixedPathsAreNoTurns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, route := range routes {
		name, beside := strings.CutPrefix(route.path, "/api/turns/")
		if !beside || strings.HasPrefix(name, "{") {
			continue
		}
		for path, rest := range map[string]string{"/api/turns": "", "/api/calls": `,"calls":[]`} {
			status, answer := w.raw("POST", path, `{"turnId":"`+name+`"`+rest+`}`)
			if status != 400 {
				t.Errorf("%s of a turn %s: %d %s", path, name, status, answer)
			}
			says(t, answer, []string{"turnId", `"` + name + `"`})
		}
	}
	w.begin(api.TurnSpec{TurnID: "actives"})
}
