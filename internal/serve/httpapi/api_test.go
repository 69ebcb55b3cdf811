package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/client"
)

// send sends a request on the unix socket.
func (w *world) send(method, path, body string, header ...string) (int, string) {
	w.t.Helper()
	return w.sendBy(w.unix, "http://localhost", method, path, body, header...)
}

func (w *world) sendBy(by *http.Client, base, method, path, body string, header ...string) (int, string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.ctx(), method, base+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	response, err := by.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	return response.StatusCode, w.bodyOf(response)
}

func (w *world) bodyOf(response *http.Response) string {
	w.t.Helper()
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Errorf("%s %s: %v", response.Request.Method, response.Request.URL, err)
	}
	return string(raw)
}

func TestATurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	status, body := w.send("POST", "/api/turns", `{"turnId":"t1","agentId":"a","sessionId":"s","maxCalls":3}`)
	if status != http.StatusCreated || !strings.Contains(body, `"turnId":"t1"`) {
		t.Fatalf("begin: %d %s", status, body)
	}
	status, body = w.send("POST", "/api/turns/t1/calls", `{"calls":[
		{"id":"1","tool":"work","arguments":{"say":"one"}}, {"id":"2","tool":"nosuch"}, {"id":"3","tool":"banned","arguments":{"n":[1e400,-1e400]}}]}`)
	if status != http.StatusOK {
		t.Fatalf("run: %d %s", status, body)
	}
	var results api.Results
	if err := json.Unmarshal([]byte(body), &results); err != nil {
		t.Fatal(err)
	}
	want := []string{"1 ok", "2 invalid_args", "3 denied"}
	if got := outcomes(results.Results); !slices.Equal(got, want) {
		t.Errorf("results %q, want %q", got, want)
	}
	if status, body := w.send("GET", "/api/tools?name=ask", ""); status != http.StatusOK || !strings.Contains(body, `"ask"`) || strings.Contains(body, `"work"`) {
		t.Errorf("one tool: %d %s", status, body)
	}
	for _, path := range []string{"/api/health", "/api/ready", "/api/tools", "/api/turns/t1", "/api/turns/active", "/api/interactions", "/api/openapi.json"} {
		if status, body := w.send("GET", path, ""); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if status, body := w.send("POST", "/api/turns/t1/end", ""); status != http.StatusOK || body != `{"ok":true,"turnId":"t1"}`+"\n" {
		t.Errorf("end: %d %s", status, body)
	}
	if status, _ := w.send("POST", "/api/turns/t1/end", ""); status != http.StatusNotFound {
		t.Errorf("end again: %d", status)
	}
}

func outcomes(results []*api.Result) (list []string) {
	for _, r := range results {
		list = append(list, r.CallID+" "+string(r.Status))
	}
	return list
}

// The same by the client package, over TCP.
func TestAClientOnTCP(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c, err := client.New(client.Options{URL: "http://" + w.address, Token: testToken})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx := w.ctx()
	begun, err := c.Begin(ctx, api.TurnSpec{})
	if err != nil {
		t.Fatal(err)
	}
	results, err := c.Run(ctx, begun.TurnID, []api.Call{callOf("a/b?c", "work", fakeArgs{})})
	if err != nil || results[0].Text() != "a/b?c" {
		t.Fatalf("%v, %+v", err, results)
	}
	if past, err := c.PastResult(ctx, begun.TurnID, "a/b?c"); err != nil || past.Text() != "a/b?c" {
		t.Errorf("result on record: %v", err)
	}
	tools, err := c.Tools(ctx)
	if err != nil || len(tools.Tools) != 2 || tools.Tools[0].Name != "work" || len(tools.Problems) != 0 {
		t.Errorf("tools: %v, %+v", err, tools)
	}
	if health, err := c.Health(ctx); err != nil || health.Status != "ok" || c.Ready(ctx) != nil {
		t.Errorf("health: %v, %+v", err, health)
	}
	if err := c.End(ctx, begun.TurnID); err != nil {
		t.Error(err)
	}
	if _, err := c.Turn(ctx, begun.TurnID); !client.IsNotFound(err) {
		t.Errorf("a turn that is over: %v", err)
	}
}

func TestAborts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	id := w.begin(api.TurnSpec{})
	done := w.runLater(w.ctx(), id, callOf("kept", "work", fakeArgs{Hold: true, Grace: true}), callOf("single", "work", fakeArgs{Hold: true}))
	w.fakes.await(t, "kept", true)
	w.fakes.await(t, "single", true)
	if err := w.client.AbortCall(w.ctx(), id, "single"); err != nil {
		t.Fatal(err)
	}
	w.fakes.await(t, "single", false)
	for i := range 3 { // the second one kills, the third finds nothing to do: all the same to the client
		if status, body := w.send("POST", "/api/turns/"+id+"/abort", ""); status != http.StatusOK || body != fmt.Sprintf(`{"ok":true,"turnId":%q}`+"\n", id) {
			t.Errorf("abort %d: %d %s", i, status, body)
		}
	}
	r := w.wait(done)
	if got := outcomes(r.results); r.err != nil || !slices.Equal(got, []string{"kept cancelled", "single cancelled"}) {
		t.Errorf("%v, %q", r.err, got)
	}
	for _, path := range []string{"/api/turns/" + id + "/abort-tool/kept", "/api/turns/" + id + "/abort-tool/never", "/api/turns/never/abort", "/api/turns/never/abort-tool/x"} {
		if status, _ := w.send("POST", path, ""); status != http.StatusNotFound {
			t.Errorf("%s: %d", path, status)
		}
	}
	if err := w.client.End(w.ctx(), id); err != nil {
		t.Fatal(err)
	}
	if err := w.client.Abort(w.ctx(), id); !client.IsNotFound(err) {
		t.Errorf("abort of a turn that is over: %v", err)
	}
}

func TestRefusedWork(t *testing.T) {
	t.Parallel()
	ready := errors.New("the journal is full")
	var unready bool
	w := newWorld(t, func(c *Config) {
		c.Ready = func() error {
			if unready {
				return ready
			}
			return nil
		}
	})
	id := w.begin(api.TurnSpec{TurnID: "one"})
	done := w.runLater(w.ctx(), id, callOf("x", "work", fakeArgs{Hold: true}))
	w.fakes.await(t, "x", true)
	two := `{"calls":[{"id":"1","tool":"work"},{"id":"1","tool":"work"}]}`
	for name, test := range map[string]struct {
		path, body string
		status     int
		says       string
	}{
		"second batch":   {"/api/turns/one/calls", `{"calls":[]}`, 409, "another batch"},
		"taken id":       {"/api/turns", `{"turnId":"one"}`, 409, "active already"},
		"nearly all":     {"/api/turns", `{"deadlineMs":10500}`, 400, "deadlineMs 10500 leaves no time for calls: 10000 of it"},
		"all reserve":    {"/api/turns", `{"deadlineMs":5000}`, 400, "deadlineMs 5000 leaves no time for calls: 10000 of it"},
		"default":        {"/api/turns", `{"deadlineMs":5000}`, 400, "a reserveMs that is smaller than the default of 10000"},
		"no parent":      {"/api/turns", `{"parentTurnId":"none"}`, 404, "no turn none"},
		"no turn":        {"/api/turns/none/calls", `{"calls":[]}`, 404, "no turn none"},
		"id with a line": {"/api/turns", `{"turnId":"a\r\nb"}`, 400, "pattern"},
		"null batch":     {"/api/turns/one/calls", `{"calls":null}`, 400, "calls"},
		"no answer":      {"/api/interactions/none/answer", `{"approve":true}`, 404, "no question"},
	} {
		if status, body := w.send("POST", test.path, test.body); status != test.status || !strings.Contains(body, test.says) {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	close(w.fakes.await(t, "x", true).letGo)
	if r := w.wait(done); r.err != nil {
		t.Error(r.err)
	}
	for _, accept := range []string{"application/json", eventStream} {
		if status, body := w.send("POST", "/api/turns/one/calls", two, "Accept", accept); status != 400 || !strings.Contains(body, "two calls") {
			t.Errorf("duplicate ids: %d %s", status, body)
		}
	}
	w.begin(api.TurnSpec{TurnID: "aborted"})
	w.send("POST", "/api/turns/aborted/abort", "")
	if status, body := w.send("POST", "/api/turns", `{"parentTurnId":"aborted"}`); status != 409 || !strings.Contains(body, "begin it without a parent") {
		t.Errorf("child of an aborted turn: %d %s", status, body)
	}
	unready = true
	for _, test := range [][3]string{{"GET", "/api/ready", ""}, {"POST", "/api/turns", "{}"}, {"POST", "/api/turns/one/calls", `{"calls":[]}`}} {
		if status, body := w.send(test[0], test[1], test[2]); status != 503 || !strings.Contains(body, ready.Error()) {
			t.Errorf("%s while unready: %d %s", test[1], status, body)
		}
	}
	unready = false
	w.server.Drain()
	if status, body := w.send("POST", "/api/turns", "{}"); status != 503 || !strings.Contains(body, "about to end") {
		t.Errorf("draining: %d %s", status, body)
	}
}

// Who goes away before the results aborts the turn.
func TestADisconnectAborts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, streamed := range []bool{false, true} {
		id := w.begin(api.TurnSpec{})
		ctx, leave := context.WithCancel(w.ctx())
		done := make(chan error, 1)
		go func() {
			calls := []api.Call{callOf("held", "work", fakeArgs{Hold: true})}
			var err error
			if streamed {
				_, err = w.client.RunEvents(ctx, id, calls, func(api.Record) {})
			} else {
				_, err = w.client.Run(ctx, id, calls)
			}
			done <- err
		}()
		w.fakes.await(t, "held", true)
		leave()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("streamed %t: %v", streamed, err)
		}
		w.fakes.await(t, "held", false)
		until(t, "the end of the turn", func() bool { _, active := w.turns.Turn(id); return !active })
		r, err := w.client.PastResult(w.ctx(), id, "held")
		if err != nil || r.Status != api.StatusCancelled || r.Reason != api.ReasonDisconnect {
			t.Errorf("streamed %t: %v, %+v", streamed, err, r)
		}
	}
}

// refusesAnswers: what does not fit is neither a yes nor a no, and the question
// goes on to wait.
func (w *world) refusesAnswers(id string, bodies ...string) {
	w.t.Helper()
	for _, answer := range bodies {
		status, body := w.send("POST", "/api/interactions/"+id+"/answer", answer)
		if status != 400 || !strings.Contains(body, "the question still waits") {
			w.t.Errorf("%s: %d %s", answer, status, body)
		}
	}
	if got := w.pending(); got.ID != id {
		w.t.Errorf("pending %+v, want %s", got, id)
	}
}

func TestInteractions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	id := w.begin(api.TurnSpec{})
	done := w.runLater(w.ctx(), id, callOf("asks", "ask", fakeArgs{Ask: true}))
	approval := w.pending()
	if approval.Kind != api.KindApproval || approval.Policy == nil || approval.Policy.Tier != "native" || !slices.Equal(approval.Policy.Read, []string{"/data"}) {
		t.Errorf("approval %+v, policy %+v", approval, approval.Policy)
	}
	if _, body := w.send("GET", "/api/turns/active", ""); !strings.Contains(body, approval.ID) {
		t.Errorf("the turn does not tell of its question: %s", body)
	}
	w.refusesAnswers(approval.ID, `{"value":"yes"}`, `{"value":1}`, `{"approve":true,"value":false}`, `{"approve":false,"value":true}`, `{"always":true}`)
	for said, why := range map[string]string{
		`{"unanswered":"later"}`:                    "unanswered is later",
		`{"unanswered":"dismissed","approve":true}`: "approve stands beside unanswered",
		`{"unanswered":"failed","approve":false}`:   "approve stands beside unanswered",
		`{"unanswered":"dismissed","for":"turn"}`:   "for stands beside unanswered",
	} {
		if status, body := w.send("POST", "/api/interactions/"+approval.ID+"/answer", said); status != 400 || !strings.Contains(body, why) {
			t.Errorf("%s: %d %s", said, status, body)
		}
	}
	if status, body := w.send("POST", "/api/interactions/"+approval.ID+"/answer", `{"approve":true,"value": null}`); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	w.fakes.await(t, "asks", true)
	question := w.pending()
	w.refusesAnswers(question.ID, `{"value":17}`, `{"approve":true}`, `{"approve":true,"value":null}`)
	if question.Kind != api.KindQuestionnaire || string(question.Schema) != `{"type":"string"}` {
		t.Errorf("question %+v", question)
	}
	if status, body := w.send("POST", "/api/interactions/"+question.ID+"/answer", `{"value":"sesame"}`); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	if r := w.wait(done); r.err != nil || r.results[0].Text() != `asks "sesame"` {
		t.Errorf("%+v", r)
	}
	if err := w.client.Answer(w.ctx(), question.ID, api.Answer{}); !client.IsNotFound(err) {
		t.Errorf("answered twice: %v", err)
	}
	w.wantBy(id, "uid ")
}

// pending waits for the one question.
func (w *world) pending() api.Interaction {
	w.t.Helper()
	for ctx := w.ctx(); ctx.Err() == nil; {
		list, err := w.client.Interactions(ctx)
		if err != nil {
			w.t.Fatal(err)
		}
		w.send("GET", "/api/interactions", "")
		if len(list) == 1 {
			return list[0]
		}
	}
	w.t.Fatal("no question")
	return api.Interaction{}
}

// wantBy checks that the record says who has answered.
func (w *world) wantBy(turnID, prefix string) {
	w.t.Helper()
	n := 0
	if err := w.client.Replay(w.ctx(), turnID, 0, func(e api.Record) bool {
		if e.Kind == api.AuditAnswered {
			n++
			if !strings.HasPrefix(e.By, prefix) {
				w.t.Errorf("answered by %q, want %s...", e.By, prefix)
			}
		}
		return true
	}); err != nil || n == 0 {
		w.t.Errorf("%d answers on record, %v", n, err)
	}
}
