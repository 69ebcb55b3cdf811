package turn

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// server plays a stateless server behind an adapter: each process takes 300 ms, asks
// for what the script says, and the last one answers with what it was given.
type server struct {
	wants   []string // inputRequests, one for each process but the last
	clients []string // what each process knew of its client
	limits  []time.Duration
}

func (s *server) start(_ context.Context, r supervisor.Request) Running {
	n := len(s.clients)
	s.clients = append(s.clients, string(r.Client))
	limit := time.Duration(0)
	for _, ask := range r.Timeouts {
		limit = ask.Max
	}
	s.limits = append(s.limits, limit)
	time.Sleep(300 * time.Millisecond)
	result := supervisor.Verdict{Status: api.StatusOK}.Result()
	result.Timing.ElapsedMs, result.Timing.TimeoutMs, result.Usage.CPUUserMs = 300, new(int64(2000)), 5
	if n < len(s.wants) {
		result.Meta = json.RawMessage(`{"resultType":"input_required","requestState":"s` + string(rune('1'+n)) + `","inputRequests":` + s.wants[n] + `}`)
	} else {
		result.Content = []api.Content{{Type: "text", Text: string(r.Client)}}
	}
	return over{result}
}

// clientOf answers what servers ask of their clients.
type clientOf struct{ asked *[]string }

func (clientOf) AsksClients() {}

func (c clientOf) Ask(_ context.Context, i api.Interaction) (api.Answer, error) {
	*c.asked = append(*c.asked, string(i.Kind)+" "+i.Request.Key)
	time.Sleep(time.Minute)
	if i.Kind == api.KindSampling {
		return api.Answer{Approve: true, Value: json.RawMessage(`{"model":"m"}`)}, nil
	}
	return api.Answer{Approve: true, Value: json.RawMessage(`{"name":"Ada"}`)}, nil
}

const nameForm = `{"user_name":{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}}`

// A server that asks for something has ended its process; the next one of the same
// call is given the answers, by the server's own keys and with its own state. Clocks
// go on from process to process, but not while the client is asked.
func TestRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{wants: []string{nameForm, `{"k":{"method":"sampling/createMessage","params":{}}}`}}
		var asked []string
		m := New(Config{Start: s.start, Interactor: clientOf{&asked}, Tool: func(string) (Tool, bool) { return Tool{Name: "work"}, true }})
		turn, err := m.Begin(Spec{})
		if err != nil {
			t.Fatal(err)
		}
		defer turn.End()
		r := run(t, turn, Call{ID: "a", Tool: "work", Client: json.RawMessage(`{"protocol":"2026-07-28"}`)})[0]
		if !r.OK() || len(r.Rounds) != 2 || r.Timing.ElapsedMs != 900 || r.Usage.CPUUserMs != 15 {
			t.Fatalf("%s, %d rounds, %+v", r.Status, len(r.Rounds), r.Timing)
		}
		for i, want := range []string{
			`{"protocol":"2026-07-28"}`,
			`{"inputResponses":{"user_name":{"action":"accept","content":{"name":"Ada"}}},"protocol":"2026-07-28","requestState":"s1"}`,
			`{"inputResponses":{"k":{"model":"m"}},"protocol":"2026-07-28","requestState":"s2"}`,
		} {
			if s.clients[i] != want {
				t.Errorf("process %d knew %s, want %s", i, s.clients[i], want)
			}
		}
		if strings.Join(asked, ", ") != "questionnaire user_name, sampling k" {
			t.Errorf("asked %q", asked)
		}
		if s.limits[1] != 1700*time.Millisecond || s.limits[2] != 1400*time.Millisecond {
			t.Errorf("the processes had %s", s.limits)
		}
	})
}

// An abort between two processes ends the call; a server that never stops asking is
// stopped.
func TestRoundsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{wants: []string{nameForm}}
		m := New(Config{Start: s.start, Tool: func(string) (Tool, bool) { return Tool{Name: "work"}, true }})
		turn, err := m.Begin(Spec{})
		if err != nil {
			t.Fatal(err)
		}
		defer turn.End()
		time.AfterFunc(time.Second, func() { turn.AbortCall("a") })
		if r := run(t, turn, Call{ID: "a", Tool: "work"})[0]; r.Status != api.StatusCancelled || len(r.Rounds) != 1 || r.Retry.SideEffects != "possible" {
			t.Errorf("%s, %d rounds: %s", r.Status, len(r.Rounds), r.Message)
		}
		endless := &server{}
		for range maxRounds + 1 {
			endless.wants = append(endless.wants, `{}`)
		}
		m = New(Config{Start: endless.start, Tool: func(string) (Tool, bool) { return Tool{Name: "work"}, true }})
		if turn, err = m.Begin(Spec{}); err != nil {
			t.Fatal(err)
		}
		defer turn.End()
		if r := run(t, turn, Call{ID: "b", Tool: "work"})[0]; r.Status != api.StatusProtocolError || len(r.Rounds) != maxRounds {
			t.Errorf("%s, %d rounds", r.Status, len(r.Rounds))
		}
	})
}

// A server that asks for what its client does not have ends its call with that error,
// without another process; one that asks for roots gets the next one all the same.
func TestRoundsWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for wants, want := range map[string]struct {
			status api.Status
			starts int
			says   string
		}{
			`{"k":{"method":"sampling/createMessage","params":{}}}`: {api.StatusToolError, 1, "sampling/createMessage"},
			`{"k":{"method":"no/such","params":{}}}`:                {api.StatusToolError, 1, "no/such"},
			`{"k":{"method":"roots/list"}}`:                         {api.StatusOK, 2, ""},
		} {
			s := &server{wants: []string{wants}}
			m := New(Config{Start: s.start, Tool: func(string) (Tool, bool) { return Tool{Name: "work"}, true }})
			turn, err := m.Begin(Spec{Headless: true})
			if err != nil {
				t.Fatal(err)
			}
			r := run(t, turn, Call{ID: "a", Tool: "work", Client: json.RawMessage(`{}`)})[0]
			turn.End()
			if r.Status != want.status || len(s.clients) != want.starts || len(r.Rounds) != 1 || !strings.Contains(r.Message, want.says) {
				t.Errorf("%s: %s after %d processes: %s", wants, r.Status, len(s.clients), r.Message)
			}
			if want.starts == 2 && s.clients[1] != `{"inputResponses":{"k":{"roots":null}},"requestState":"s1"}` {
				t.Errorf("the second process knew %s", s.clients[1])
			}
		}
	})
}
