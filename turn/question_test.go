package turn

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
)

// asking is a call of a tool that puts a question, and then takes a second.
func asking(id, schema string, more func(*fakeArgs)) Call {
	args := fakeArgs{Ms: 1000, Say: id, Ask: "Which?"}
	if schema != "" {
		args.Schema = json.RawMessage(schema)
	}
	if more != nil {
		more(&args)
	}
	raw, _ := json.Marshal(args)
	return Call{ID: id, Tool: "work", Arguments: raw}
}

func TestHeadlessTakesTheDeclaredDefault(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"string","default":"blue"}`:                                                            ` answered: "blue"`,
		`{"type":"object","properties":{"n":{"type":"integer","default":3}},"required":["n"]}`:          ` answered: {"n":3}`,
		`{"type":"object","properties":{"n":{"default":3},"m":{"type":"string"}},"required":["n","m"]}`: " denied: headless",
		`{"type":"integer","default":"blue"}`:                                                           " denied: headless",
		`{"type":"string"}`:                                                                             " denied: headless",
		"":                                                                                              " denied: headless",
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			turn := w.begin(t, Spec{Headless: true})
			defer turn.End()
			began := time.Now()
			r := run(t, turn, asking("a", schema, nil))[0]
			if took := time.Since(began); took != time.Second || r.Text() != "a"+want {
				t.Errorf("%s: said %q after %s, want %q after 1s", schema, r.Text(), took, want)
			}
			for _, record := range w.journal.list() {
				e := record.Event
				if e.Kind == api.AuditRequested && (e.Outcome != api.OutcomeHeadless || (len(e.Default) > 0) != strings.Contains(want, "answered")) {
					t.Errorf("%s: the record is %s", schema, record.JSON)
				}
			}
			if got := kinds(w, "a"); !slices.Equal(got, []api.EventKind{"tool_queued", "tool_started", api.AuditRequested, "tool_finished"}) {
				t.Errorf("%s: events %q", schema, got)
			}
		})
	}
}

// A secret answer reaches the tool and nothing else.
func TestSecretsLeaveNoTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{})
		go answer(t, turn, "a", api.Answer{Value: json.RawMessage(`"hunter2"`), By: "me"})
		r := run(t, turn, asking("a", "", func(a *fakeArgs) { a.Secret = true }))[0]
		if r.Text() != "a a secret of 9 bytes" {
			t.Errorf("the tool got %q", r.Text())
		}
		info, _ := turn.Info()
		turn.End()
		seen := [][]byte{asJSON(t, r), asJSON(t, info)}
		for record := range turn.Events(t.Context(), 0) {
			seen = append(seen, record.JSON, asJSON(t, record))
		}
		if bytes.Contains(bytes.Join(seen, nil), []byte("hunter2")) {
			t.Errorf("the secret is in\n%s", bytes.Join(seen, []byte("\n")))
		}
		if got := kinds(w, "a"); !slices.Contains(got, api.AuditAnswered) {
			t.Errorf("events %q", got)
		}
	})
}

func asJSON(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// An answer that does not fit answers nothing; the question goes on to wait.
func TestAnswersAreChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{})
		defer turn.End()
		time.AfterFunc(time.Second, func() {
			info, _ := turn.Info()
			id := info.PendingInteractions[0].ID
			if found, ok := w.Asking(id); !ok || found != turn {
				t.Errorf("%v asks %s", found, id)
			}
			for _, value := range []string{`"x"`, `7`, `{`, `"` + strings.Repeat("x", maxAnswerBytes) + `"`} {
				if err := turn.Answer(id, api.Answer{Value: json.RawMessage(value)}); err == nil {
					t.Errorf("%.20s was taken", value)
				}
			}
			if err := turn.Answer(id, api.Answer{Value: json.RawMessage("3")}); err != nil {
				t.Error(err)
			}
			if found, ok := w.Asking(id); ok {
				t.Errorf("%v still asks %s", found, id)
			}
		})
		if r := run(t, turn, asking("a", `{"type":"integer","maximum":5}`, nil))[0]; r.Text() != "a answered: 3" {
			t.Errorf("the tool got %q", r.Text())
		}
	})
}

// Null is not a value where none is needed.
func TestNullAsAnAnswer(t *testing.T) {
	for _, c := range []struct {
		schema        string
		answer        api.Answer
		approve, fits bool
		value         string
	}{
		{"", api.Answer{Approve: true, Value: json.RawMessage(" null\n")}, true, true, ""},
		{"", api.Answer{Value: json.RawMessage("null")}, false, true, ""},
		{`{"type":"string"}`, api.Answer{Value: json.RawMessage("null")}, false, true, ""},
		{`{"type":"string"}`, api.Answer{Approve: true, Value: json.RawMessage("null")}, true, false, "null"},
		{`{"type":"null"}`, api.Answer{Value: json.RawMessage("null")}, false, true, "null"},
	} {
		p := &pending{Interaction: api.Interaction{Schema: json.RawMessage(c.schema)}}
		p.check, _ = readSchema(p.Interaction)
		a := c.answer
		if err := p.fit(&a); (err == nil) != c.fits || a.Approve != c.approve || string(a.Value) != c.value {
			t.Errorf("%s, %+v: %v, %t %s", c.schema, c.answer, err, a.Approve, a.Value)
		}
	}
}

func TestSecretsThatAreNoSingleValue(t *testing.T) {
	check, declared := readSchema(api.Interaction{Secret: true, Schema: json.RawMessage(`{"default":"x"}`)})
	for value, fits := range map[string]bool{`"x"`: true, "12": true, `["x"]`: false, ` {"a":"x"}`: false, "": false} {
		if err := check(json.RawMessage(value)); (err == nil) != fits {
			t.Errorf("%s: %v", value, err)
		}
	}
	if declared != nil {
		t.Errorf("a secret has the default %s", declared)
	}
}

// A property's schema may be true or false.
func TestDefaultsBesideABooleanSchema(t *testing.T) {
	_, declared := readSchema(api.Interaction{Schema: json.RawMessage(`{"properties":{"any":true,"count":{"default":3}}}`)})
	if string(declared) != `{"count":3}` {
		t.Errorf("the default is %s", declared)
	}
}

// A schema that the library would read in other letters refers to itself for ever.
func TestSchemaInOtherLetters(t *testing.T) {
	check, declared := readSchema(api.Interaction{Schema: json.RawMessage(`{"type":"object","$REF":"#","default":{}}`)})
	if string(declared) != `{}` || check(json.RawMessage(`{"a":1}`)) != nil {
		t.Errorf("%s", declared)
	}
}

// What an interactor answers wrongly is not a yes.
func TestWrongAnswerOfTheInteractor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.config.Interactor = &scripted{a: api.Answer{Value: json.RawMessage(`"x"`)}, ended: make(chan error, 1)}
		turn := w.begin(t, Spec{})
		defer turn.End()
		if r := run(t, turn, asking("a", `{"type":"integer"}`, nil))[0]; r.Text() != "a denied: failed" {
			t.Errorf("the tool got %q", r.Text())
		}
	})
}

// What destroys something is confirmed each time.
func TestAlwaysIsForApprovalsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{})
		defer turn.End()
		go func() {
			answer(t, turn, "a", api.Answer{Approve: true, Always: true})
			answer(t, turn, "b", api.Answer{})
		}()
		want(t, run(t, turn, callOf("a", "wipe", 1), callOf("b", "wipe", 2)), "ok", "denied/user")
	})
}

// One approval for all also answers those of the same tool that wait already.
func TestAlwaysAnswersWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{})
		defer turn.End()
		go answer(t, turn, "b", api.Answer{Approve: true, Always: true})
		want(t, run(t, turn, callOf("a", "ask", 1), callOf("b", "ask", 2)), "ok", "ok")
	})
}

// Tool time stands still while a human is asked, also by several questions at
// once, and goes on for the calls beside.
// What a call waits for before it starts, such as its data, is not a tool time.
func TestToolTimeOfCallsThatWaitToStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{Budget: budget.TurnSpec{ToolTime: 10 * time.Second}})
		defer turn.End()
		waits := func(id string, ms int) Call {
			return asking(id, "", func(a *fakeArgs) { a.Ask, a.Queue, a.Ms = "", 20_000, ms })
		}
		for _, c := range []struct {
			calls []Call
			left  int64
		}{
			{[]Call{waits("a", 2000)}, 8000},
			{[]Call{waits("b", 1000), callOf("c", "work", 3000)}, 4000},
			{[]Call{waits("d", 1000), waits("e", 2000)}, 2000},
			{[]Call{callOf("f", "work", 1000)}, 1000},
		} {
			var left int64 = -1
			for _, r := range run(t, turn, c.calls...) {
				if !r.OK() || r.RemainingMs == nil {
					t.Fatalf("%s: %s, %v", r.CallID, r.Status, r.RemainingMs)
				}
				if left < 0 || *r.RemainingMs < left {
					left = *r.RemainingMs
				}
			}
			if left != c.left {
				t.Errorf("after %s %d ms are left, want %d", c.calls[0].ID, left, c.left)
			}
		}
	})
}

func TestToolTimeBesideQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{Budget: budget.TurnSpec{ToolTime: time.Hour}})
		defer turn.End()
		two := func(a *fakeArgs) { a.Times = 2 }
		results := run(t, turn, asking("a", "", two), callOf("b", "work", 20_000))
		want(t, results, "ok", "ok")
		if results[0].Text() != "a denied: timeout denied: timeout" {
			t.Errorf("the tool got %q", results[0].Text())
		}
		// b's 20 s, and a's second after its questions' 120 s.
		if left := time.Duration(*results[0].RemainingMs) * time.Millisecond; left != time.Hour-21*time.Second {
			t.Errorf("%s are left of an hour", left)
		}
	})
}

// A host asks for itself.
func TestHostAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{})
		go answer(t, turn, "", api.Answer{Approve: true, By: "me"})
		r, err := turn.Raise(t.Context(), Question{Kind: api.KindEscalation, Prompt: "Take over?"})
		if r.Outcome != api.OutcomeAnswered || !r.Approve || r.By != "me" || err != nil {
			t.Errorf("%+v, %v", r, err)
		}
		began := time.Now()
		r, err = turn.Raise(t.Context(), Question{Kind: api.KindEscalation, Prompt: "And now?", Timeout: time.Second})
		if took := time.Since(began); r.Outcome != api.OutcomeTimedOut || r.Warning == "" || took != time.Minute || err != nil {
			t.Errorf("%+v after %s, %v", r, took, err)
		}
		if _, err := turn.Raise(t.Context(), Question{Kind: api.KindDeviceCode, Prompt: "Go to"}); err == nil {
			t.Error("a device code without a timeout was taken")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if r, _ := turn.Raise(ctx, Question{Kind: api.KindDeviceCode, Prompt: "Go to", Timeout: time.Minute}); r.Outcome != api.OutcomeCancelled {
			t.Errorf("%s after the context's end", r.Outcome)
		}
		turn.End()
		if _, err := turn.Raise(t.Context(), Question{Kind: api.KindEscalation, Prompt: "Late"}); err == nil {
			t.Error("a turn that is over asked")
		}
	})
}

// An abort does not wait until a call is prepared.
func TestAbortCutsPreparationShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{})
		defer turn.End()
		began := time.Now()
		time.AfterFunc(time.Second, func() { turn.Abort(api.ReasonUser) })
		slow := Call{ID: "a", Tool: "work", Arguments: []byte(`{"slow":60000}`)}
		results := run(t, turn, slow)
		want(t, results, "cancelled/user")
		if took := time.Since(began); took != time.Second || results[0].Message != "[CANCELLED] Turn aborted by user." {
			t.Errorf("%q after %s", results[0].Message, took)
		}
	})
}
