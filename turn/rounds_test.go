package turn

import (
	"cmp"
	"context"
	"encoding/json"
	"reflect"
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
	first   api.Result // what the first process has of it
	slow    bool       // the time passes after the start
}

func (s *server) start(_ context.Context, r supervisor.Request) Running {
	n := len(s.clients)
	s.clients = append(s.clients, string(r.Client))
	limit := time.Duration(0)
	for _, ask := range r.Timeouts {
		limit = ask.Max
	}
	s.limits = append(s.limits, limit)
	result := supervisor.Verdict{Status: api.StatusOK}.Result()
	result.Timing.ElapsedMs, result.Timing.TimeoutMs, result.Usage.CPUUserMs = 300, new(int64(2000)), 5
	if n == 0 {
		result.Overran, result.Kill.Cause, result.Output, result.Network, result.Warnings = s.first.Overran, s.first.Kill.Cause, s.first.Output, s.first.Network, s.first.Warnings
		result.Limits, result.Timing.SoftBudgetMs = s.first.Limits, s.first.Timing.SoftBudgetMs
		if s.first.Timing.TimeoutMs != nil {
			result.Timing.TimeoutMs = s.first.Timing.TimeoutMs
		}
	}
	if n < len(s.wants) {
		result.Meta = json.RawMessage(`{"resultType":"input_required","requestState":"s` + string(rune('1'+n)) + `","inputRequests":` + s.wants[n] + `}`)
	} else {
		result.Content = []api.Content{{Type: "text", Text: string(r.Client)}}
	}
	if s.slow {
		return later{over{result}}
	}
	time.Sleep(300 * time.Millisecond)
	return over{result}
}

// later is a call whose time passes after its start.
type later struct{ over }

func (l later) Result() *api.Result {
	time.Sleep(300 * time.Millisecond)
	return l.over.Result()
}

// of makes a call of the server's tool, which is aborted after a while if that is not 0.
func (s *server) of(t *testing.T, abort time.Duration) *api.Result {
	t.Helper()
	m := New(Config{Start: s.start, Tool: func(string) (Tool, bool) { return Tool{Name: "work"}, true }})
	turn, err := m.Begin(Spec{})
	if err != nil {
		t.Fatal(err)
	}
	defer turn.End()
	if abort > 0 {
		time.AfterFunc(abort, func() { turn.AbortCall("a") })
	}
	return run(t, turn, Call{ID: "a", Tool: "work"})[0]
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
		if !r.OK() || len(r.Rounds) != 2 || r.Timing.HumanWaitMs != 120_000 || r.Timing.ElapsedMs != 120_900 || r.Usage.CPUUserMs != 15 {
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
		endless := &server{first: api.Result{Timing: api.Timing{TimeoutMs: new(int64(60_000))}}}
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
			`{"k":{"method":"sampling/createMessage","params":{}}}`:            {api.StatusToolError, 1, "sampling/createMessage"},
			`{"1":{},"2":{},"3":{},"4":{},"5":{},"6":{},"7":{},"8":{},"9":{}}`: {api.StatusToolError, 1, "asked for 9 things at once"},
			`{"k":{"method":"no/such","params":{}}}`:                           {api.StatusToolError, 1, "no/such"},
			`{"k":{"method":"roots/list"}}`:                                    {api.StatusOK, 2, ""},
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

// refusing is a client that answers each request with an error.
type refusing struct{}

func (refusing) AsksClients() {}

func (refusing) Ask(context.Context, api.Interaction) (api.Answer, error) {
	return api.Answer{Unanswered: api.OutcomeFailed, Refusal: json.RawMessage(`{"code":-1,"message":"not this one"}`)}, nil
}

// No process is told of a client's error as if it were an answer: folders that a client
// refuses are those that it has not, and for anything else the call ends with its words.
func TestRoundsThatAClientRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for method, want := range map[string]string{
			"roots/list":             `{"inputResponses":{"k":{"roots":null}},"requestState":"s1"}`,
			"sampling/createMessage": "[FAILED] The tool's server asked for sampling/createMessage, and the client of this call has refused that: not this one (code -1).",
		} {
			s := &server{wants: []string{`{"k":{"method":"` + method + `","params":{}}}`}}
			m := New(Config{Start: s.start, Interactor: refusing{}, Tool: func(string) (Tool, bool) { return Tool{Name: "work"}, true }})
			turn, err := m.Begin(Spec{})
			if err != nil {
				t.Fatal(err)
			}
			r := run(t, turn, Call{ID: "a", Tool: "work"})[0]
			turn.End()
			if got := s.clients[len(s.clients)-1]; r.Message != want && got != want {
				t.Errorf("%s: the last process knew %s, and the call ended with %q", method, got, r.Message)
			}
		}
	})
}

// A limit holds for all rounds together: nothing begins, and nobody is asked, once one is
// used up or has ended a process.
func TestLimitsOfAllRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		endless := []string{`{}`, `{}`, `{}`, `{}`, `{}`, `{}`, `{}`, `{}`}
		for name, c := range map[string]struct {
			first  api.Result
			wants  []string
			status api.Status
			rounds int
		}{
			"timeout":  {api.Result{Timing: api.Timing{TimeoutMs: new(int64(500))}}, endless, api.StatusTimeout, 2},
			"in grace": {api.Result{Kill: api.Kill{Cause: "deadline"}}, []string{nameForm}, api.StatusTimeout, 1},
			"silence":  {api.Result{Kill: api.Kill{Cause: "idle"}}, []string{nameForm}, api.StatusTimeout, 1},
			"CPU":      {api.Result{Limits: api.AppliedLimits{CPUTimeMs: 12}}, endless, api.StatusCPULimit, 3},
			"output":   {api.Result{Limits: api.AppliedLimits{OutputTotalBytes: 9}, Output: api.Output{Stderr: api.StreamOutput{SeenBytes: 9}}}, endless, api.StatusOutputLimit, 1},
		} {
			s := &server{wants: c.wants, first: c.first}
			r := s.of(t, 0)
			if r.Status != c.status || len(r.Rounds) != c.rounds || len(s.clients) != c.rounds || r.Retry.SideEffects != "possible" {
				t.Errorf("%s: %s (%s), %d rounds, %d processes: %s", name, r.Status, r.Reason, len(r.Rounds), len(s.clients), r.Message)
			}
			if *r.Timing.TimeoutMs != *cmp.Or(c.first.Timing.TimeoutMs, new(int64(2000))) {
				t.Errorf("%s: the timeout is %d", name, *r.Timing.TimeoutMs)
			}
		}
	})
}

// An abort while a process runs ends the call, though that process gives a question.
func TestAbortInARound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, slow := range []bool{false, true} {
			s := &server{wants: []string{`{}`}, slow: slow}
			if r := s.of(t, 100*time.Millisecond); r.Status != api.StatusCancelled || len(s.clients) != 1 {
				t.Errorf("slow %t: %s after %d processes: %s", slow, r.Status, len(s.clients), r.Message)
			}
		}
	})
}

// One result says what became of all rounds.
func TestRoundsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{wants: []string{`{}`}, first: api.Result{
			Warnings: []string{"w"}, Limits: api.AppliedLimits{OutputBytes: 100}, Timing: api.Timing{SoftBudgetMs: 500},
			Output: api.Output{Stderr: api.StreamOutput{Head: "said", SeenBytes: 4, KeptBytes: 4}},
			Remote: api.Remote{Network: &api.Network{Mode: "grants", Flows: []api.NetworkFlow{{Name: "a.example"}}, Unreachable: 2, Limit: "sent"}},
		}}
		r := s.of(t, 0)
		if !r.OK() || !r.Overran || strings.Join(r.Warnings, " ") != "w" || r.Output.Stderr.Head != "said" || r.Timing.SoftBudgetMs != 500 || r.Limits.OutputBytes != 100 {
			t.Errorf("%+v", r)
		}
		if n := r.Network; n == nil || len(n.Flows) != 1 || n.Unreachable != 2 || n.Limit != "sent" {
			t.Errorf("network %+v", r.Network)
		}
		many := api.Network{Mode: "grants", MoreFlows: 1}
		for range api.MaxNetworkEntries - 1 {
			many.Flows = append(many.Flows, api.NetworkFlow{Connections: 1, SentBytes: 2, ReceivedBytes: 3})
		}
		n := networkOfBoth(&many, &many)
		if all, _ := n.Total(); len(n.Flows) != api.MaxNetworkEntries || n.MoreFlows != 100 || all != (api.NetworkFlow{Connections: 200, SentBytes: 396, ReceivedBytes: 594}) {
			t.Errorf("%d flows and %d more, in all %+v", len(n.Flows), n.MoreFlows, all)
		}
		if all := timingOf([]*api.Result{{}}, api.Timing{SilenceLimitMs: 3000}); all.SilenceLimitMs != 3000 {
			t.Errorf("%+v", all)
		}
		long := api.StreamOutput{Head: "1234", SeenBytes: 4, KeptBytes: 4}
		if both := streamOfBoth(long, long, 6); both.Head != "1234" || both.SeenBytes != 8 || both.DroppedBytes != 4 {
			t.Errorf("%+v", both)
		}
	})
}

// All rounds count for what a call has used; of peaks the highest one.
func TestUsageOfRounds(t *testing.T) {
	var one api.Usage
	fields := reflect.ValueOf(&one).Elem()
	for i := range fields.NumField() {
		fields.Field(i).SetInt(1)
	}
	both := reflect.ValueOf(usedBoth(api.Usage{}, one))
	sum := reflect.ValueOf(usedBoth(one, one))
	for i := range fields.NumField() {
		name, want := fields.Type().Field(i).Name, int64(2)
		if strings.HasSuffix(name, "Peak") || strings.HasSuffix(name, "PeakBytes") {
			want = 1
		}
		if both.Field(i).Int() != 1 || sum.Field(i).Int() != want {
			t.Errorf("%s: %d of the first round alone, %d of both", name, both.Field(i).Int(), sum.Field(i).Int())
		}
	}
}
