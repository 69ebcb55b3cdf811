package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

const form = `{"type":"object","properties":{"colour":{"type":"string","enum":["red","blue"]}},"required":["colour"]}`

// Servers that are called through a supervisor.
func init() {
	for name, script := range map[string]func(*peer){
		// asks sends the argument "ask" as an elicitation's parameters and answers
		// with the human's answer.
		"asks": func(p *peer) {
			p.initialize()
			m := p.call()
			p.say(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":%s}`, m.param("arguments", "ask"))
			answer := p.next()
			p.text(m, string(answer.Result)+string(answer.Error))
			p.drain()
		},
		"samples": func(p *peer) {
			p.initialize()
			m := p.call()
			p.say(`{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":%s}`, m.param("arguments", "ask"))
			answer := p.next()
			p.text(m, string(answer.Result)+string(answer.Error))
			p.drain()
		},
		"heeds SIGTERM": func(p *peer) {
			terminated := make(chan os.Signal, 1)
			signal.Notify(terminated, syscall.SIGTERM)
			p.initialize()
			m := p.call()
			if m.param("arguments", "wait") != "" {
				p.progress(m, 1, 2, "")
				<-terminated
			}
			p.text(m, "finished in time")
			p.drain()
		},
		// "who" answers with a name that no other process has.
		"who": func(p *peer) {
			name := rand.Text()
			p.initialize()
			for {
				p.text(p.call(), name+os.Getenv("TOOLHOST_PLUGIN")+os.Getenv("OF_MINE"))
			}
		},
	} {
		scripts[name] = script
	}
}

var unconfined = supervisor.Policy{Tier: sandbox.TierNone}

func TestElicitation(t *testing.T) {
	t.Parallel()
	host := newHost(t)
	for _, test := range []struct {
		name, ask string
		answer    supervisor.Answer
		want      string // a part of what the server gets
		asked     bool
	}{
		{"form", `{"mode":"form","message":"Which?","requestedSchema":` + form + `}`, supervisor.Answer{Value: json.RawMessage(`{"colour":"blue"}`)}, `{"action":"accept","content":{"colour":"blue"}}`, true},
		{"_meta", `{"message":"Which?","requestedSchema":` + form + `}`, supervisor.Answer{Value: json.RawMessage(`{"colour":"red"}`), Meta: json.RawMessage(`{"k":1.50}`)}, `,"_meta":{"k":1.50}}`, true},
		{"_meta of a no", `{"message":"Which?","requestedSchema":` + form + `}`, supervisor.Answer{Denied: "user", Meta: json.RawMessage(`{"k":1}`)}, `{"action":"decline","_meta":{"k":1}}`, true},
		{"old form", `{"message":"Which?","requestedSchema":` + form + `}`, supervisor.Answer{Value: json.RawMessage(`{"colour":"red"}`)}, `"accept"`, true},
		{"no such colour", `{"message":"Which?","requestedSchema":` + form + `}`, supervisor.Answer{Value: json.RawMessage(`{"colour":"green"}`)}, `does not match requested schema`, true},
		{"no set of values", `{"message":"Which?","requestedSchema":` + form + `}`, supervisor.Answer{Value: json.RawMessage(`true`)}, `{"action":"cancel"}`, true},
		{"yes", `{"message":"Go on?"}`, supervisor.Answer{Value: json.RawMessage(`true`)}, `{"action":"accept"}`, true},
		{"no", `{"message":"Go on?"}`, supervisor.Answer{Value: json.RawMessage(`false`)}, `{"action":"decline"}`, true},
		{"denied", `{"message":"Which?","requestedSchema":` + form + `}`, supervisor.Answer{Denied: "user"}, `{"action":"decline"}`, true},
		{"nobody there", `{"message":"Which?","requestedSchema":` + form + `}`, supervisor.Answer{Denied: "timeout"}, `{"action":"cancel"}`, true},
		{"url", `{"mode":"url","message":"Log in","url":"https://example.com","elicitationId":"1"}`, supervisor.Answer{Value: json.RawMessage(`{"":{"action":"accept"}}`)}, `{"action":"accept"}`, true},
		{"url, nobody there", `{"mode":"url","message":"Log in","url":"https://example.com","elicitationId":"1"}`, supervisor.Answer{Denied: "headless"}, `{"action":"cancel"}`, true},
		{"too large", `{"message":"Which?","requestedSchema":{"type":"object","description":"` + big(16<<10) + `"}}`, supervisor.Answer{}, `{"action":"cancel"}`, false},
		{"bad schema", `{"message":"Which?","requestedSchema":{"type":"array"}}`, supervisor.Answer{}, `must be of type 'object'`, false},
	} {
		r := request(argv("asks"), "plain", `{"ask":`+test.ask+`}`, unconfined)
		var asked *supervisor.Question
		r.Ask = func(_ context.Context, q supervisor.Question) supervisor.Answer {
			asked = &q
			return test.answer
		}
		result := run(t, host, r)
		if result.Status != api.StatusOK || !strings.Contains(wordsOf(result), test.want) || (asked != nil) != test.asked {
			t.Errorf("%s: %s %q, want %q; asked %+v\nstderr: %s", test.name, result.Status, wordsOf(result), test.want, asked, result.Output.Stderr.Head)
		}
		if test.name == "form" && (asked.Prompt != "Which?" || !strings.Contains(string(asked.Schema), `"enum":["red","blue"]`)) {
			t.Errorf("asked %+v", asked)
		}
	}
}

// Whoever asks while several calls run gets no answer: nobody could say whose
// question it is.
func TestElicitationOfSeveralCalls(t *testing.T) {
	w := &wire{calls: map[string]*call{}}
	first, second := &call{}, &call{}
	w.begin(first)
	if got := w.asker(); got != first {
		t.Errorf("asker %p, want the only call", got)
	}
	w.begin(second)
	if got := w.asker(); got != nil {
		t.Errorf("asker %p of two calls", got)
	}
}

// The host's SIGTERM reaches adapter and server alike: what the server still
// answers counts.
func TestASIGTERMThatTheServerHeeds(t *testing.T) {
	host := newHost(t)
	r := request(argv("heeds SIGTERM"), "plain", `{"wait":true}`, unconfined)
	r = enough(t, host, r, request(argv("heeds SIGTERM"), "plain", `{}`, unconfined))
	r.Grace = 20 * time.Second
	result := run(t, host, r)
	if result.Status != api.StatusOK || !result.Overran || !strings.Contains(wordsOf(result), "finished in time") {
		t.Errorf("%s, %q: %s\nstderr: %s", result.Status, wordsOf(result), result.Message, result.Output.Stderr.Head)
	}
}

// A kept process has one server for all calls, each call's own process one of
// its own; neither sees the handshake.
func TestKeptServers(t *testing.T) {
	t.Parallel()
	host := newHost(t)
	servers := map[bool]map[string]bool{true: {}, false: {}}
	for range 3 {
		for kept := range servers {
			r := request(argv("who"), "plain", `{}`, unconfined)
			r.Env = []string{"OF_MINE=mine"}
			if kept {
				r.Keep = &supervisor.Keep{}
			}
			result := run(t, host, r)
			wantOK(t, result, "mine")
			if strings.Contains(wordsOf(result), "toolhost.plugin") {
				t.Errorf("it sees the handshake: %q", wordsOf(result))
			}
			servers[kept][wordsOf(result)] = true
		}
	}
	if len(servers[true]) != 1 || len(servers[false]) != 3 {
		t.Errorf("servers: kept %v, fresh %v", servers[true], servers[false])
	}
}

// What is wrong with a request for a model is the server's fault, and a client's refusal
// comes to it as the client has worded it.
func TestSamplingFails(t *testing.T) {
	t.Parallel()
	host := newHost(t)
	const message = `{"role":"user","content":{"type":"text","text":"hi"}}`
	for ask, want := range map[string]string{
		`5`: `{"code":-32602,"message":"params.messages must be an array of messages"}`,
		`{"messages":[` + message + `],"maxTokens":"x"}`: `{"code":-32602,"message":"params.maxTokens cannot be a string"}`,
		`{"messages":[` + message + `],"maxTokens":5}`:   `{"code":-1,"message":"User rejected sampling request"}`,
	} {
		r := request(argv("samples"), "plain", `{"ask":`+ask+`}`, unconfined)
		r.Ask = func(context.Context, supervisor.Question) supervisor.Answer {
			return supervisor.Answer{Value: json.RawMessage(`{"":{"dev.toolhost/refused":{"code":-1,"message":"User rejected sampling request"}}}`)}
		}
		wantOK(t, run(t, host, r), want)
	}
}
