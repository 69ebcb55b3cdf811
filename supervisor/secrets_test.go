package supervisor_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

const secret = `hunter2-"quoted"-hunter2`

// everything that a call brings back, as JSON and as the events' text.
func everything(t *testing.T, r *api.Result, events chan api.Event) string {
	t.Helper()
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	all := string(raw) + r.Text()
	close(events)
	for e := range events {
		raw, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		all += string(raw)
		if e.Content != nil {
			all += e.Content.Text
		}
	}
	return all
}

func wantHidden(t *testing.T, all string) {
	t.Helper()
	for _, form := range []string{secret, strings.Trim(string(must(json.Marshal(secret))), `"`), "hunter2"} {
		if strings.Contains(all, form) {
			t.Errorf("%q is in it: %.300s", form, all[max(strings.Index(all, form)-100, 0):])
		}
	}
	if !strings.Contains(all, "[REDACTED]") {
		t.Errorf("nothing was redacted in: %.300s", all)
	}
}

func must(raw []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return raw
}

// A tool that gives its secrets away in every way that it has.
func TestSecretsAreNowhere(t *testing.T) {
	spill := t.TempDir()
	host := newHost(t, supervisor.Config{SpillDir: spill})
	for _, file := range []bool{false, true} {
		r := request("leak", `{}`)
		events := make(chan api.Event, 1000)
		r.Events, r.Secrets = events, []supervisor.Secret{{Variable: "TOKEN", Value: secret, File: file}}
		r.Limits.OutputBytes = 64
		result := call(t, host, r)
		wantStatus(t, result, api.StatusToolError)
		if !strings.HasPrefix(result.Text(), "it is [REDACTED], and ") {
			t.Errorf("text %q", result.Text())
		}
		wantHidden(t, everything(t, result, events))
		if names := strings.Join(result.Sandbox.Secrets, ""); file != (names == "TOKEN") {
			t.Errorf("receipt names %q", names)
		}
	}
	spilled, err := filepath.Glob(spill + "/*")
	if err != nil || len(spilled) == 0 {
		t.Fatalf("nothing spilled: %v", err)
	}
	for _, path := range spilled {
		wantHidden(t, string(must(os.ReadFile(path))))
	}
}

// The answer to a secret question is kept out of sight like any other secret.
func TestSecretAnswersAreNowhere(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	r := request("askSecret", `{}`)
	events := make(chan api.Event, 1000)
	r.Events = events
	r.Ask = func(context.Context, supervisor.Question) supervisor.Answer {
		return supervisor.Answer{Value: must(json.Marshal(secret))}
	}
	result := call(t, host, r)
	wantStatus(t, result, api.StatusOK)
	if result.Text() != "thanks for [REDACTED]" {
		t.Errorf("text %q", result.Text())
	}
	wantHidden(t, everything(t, result, events))
}

func TestBadSecrets(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	for _, s := range []supervisor.Secret{{Variable: "", Value: "long enough"}, {Variable: "A=B", Value: "long enough"}, {Variable: "A", Value: ""}, {Variable: "A", Value: "abc"}, {Variable: "A", Value: "with \x00 in it"}} {
		r := request("echo", `{"text":"x"}`)
		r.Secrets = []supervisor.Secret{s}
		result := call(t, host, r)
		wantStatus(t, result, api.StatusStartFailed)
		if result.Reason != "secrets" {
			t.Errorf("%v: reason %q: %s", s, result.Reason, result.Message)
		}
	}
	for message, secrets := range map[string][]supervisor.Secret{
		"the secret A is given twice":             {{Variable: "A", Value: "long enough"}, {Variable: "A", Value: "another one", File: true}},
		"the secret B has 3 bytes: at least 4":    {{Variable: "A", Value: "long enough"}, {Variable: "B", Value: "abc\n"}},
		"TOOLHOST_CALL_ID of a secret":            {{Variable: "TOOLHOST_CALL_ID", Value: "long enough"}},
		"TOOLHOST_PLUGIN of a secret":             {{Variable: "TOOLHOST_PLUGIN", Value: "long enough"}},
		"PLUGIN_PROTOCOL_VERSIONS of a secret is": {{Variable: "PLUGIN_PROTOCOL_VERSIONS", Value: "long enough", File: true}},
	} {
		r := request("echo", `{"text":"x"}`)
		r.Secrets = secrets
		if result := call(t, host, r); result.Reason != api.ReasonSecrets || !strings.Contains(result.Message, message) {
			t.Errorf("reason %q: %s, want %q", result.Reason, result.Message, message)
		}
	}
	r := request("echo", `{}`)
	r.Sandbox, r.Secrets = &supervisor.Policy{Tier: "none"}, []supervisor.Secret{{Variable: "A", Value: "long enough", File: true}}
	wantStatus(t, call(t, host, r), api.StatusStartFailed)
}
