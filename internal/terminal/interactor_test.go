package terminal

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/pty"
)

const (
	ctrlD     = "\x04"
	interrupt = "\x03"
)

// ask puts a question to somebody who types keys after each prompt is shown.
func ask(t *testing.T, p *pty.PTY, i *Interactor, q api.Interaction, keys ...string) api.Answer {
	t.Helper()
	answered := make(chan api.Answer, 1)
	const prompt = " > "
	before := strings.Count(p.Screen(), prompt)
	go func() {
		a, err := i.Ask(context.Background(), q)
		if err != nil {
			t.Error(err)
		}
		answered <- a
	}()
	for n, key := range keys {
		p.Expect(t, prompt, before+n+1)
		p.Type(t, key)
	}
	select {
	case a := <-answered:
		return a
	case <-time.After(time.Minute):
		t.Fatalf("no answer after %q:\n%s", keys, p.Screen())
		return api.Answer{}
	}
}

func TestAnswers(t *testing.T) {
	flat := `{"type":"object","properties":{"name":{"type":"string","title":"Your name","minLength":2},"age":{"type":"integer"},
		"ok":{"type":"boolean"},"colour":{"type":"string","enum":["red","green"]}},"required":["name","ok","colour"]}`
	for name, test := range map[string]struct {
		q    api.Interaction
		keys []string
		want string // approve, always or the value; empty is no
	}{
		"yes":                    {api.Interaction{Kind: api.KindApproval}, []string{"y\r"}, "approve"},
		"no":                     {api.Interaction{Kind: api.KindApproval}, []string{"n\r"}, ""},
		"always":                 {api.Interaction{Kind: api.KindApproval}, []string{"a\r"}, "always"},
		"neither":                {api.Interaction{Kind: api.KindApproval}, []string{"\r", "hm\r", "y\r"}, "approve"},
		"no always to a confirm": {api.Interaction{Kind: api.KindConfirm}, []string{"a\r", "y\r"}, "approve"},
		"Ctrl-D":                 {api.Interaction{Kind: api.KindApproval}, []string{ctrlD}, ""},
		"Ctrl-C":                 {api.Interaction{Kind: api.KindConfirm}, []string{"y" + interrupt}, ""},
		"form":                   {form1(flat), []string{"A\r", "Ada\r", "\r", "y\r", "2\r"}, `{"colour":"green","name":"Ada","ok":true}`},
		"form, all":              {form1(flat), []string{"Ada\r", "x\r", "7\r", "no\r", "blue\r", "red\r"}, `{"age":7,"colour":"red","name":"Ada","ok":false}`},
		"form, Ctrl-C":           {form1(flat), []string{"Ada\r", interrupt}, ""},
		"form, empty":            {form1(flat), []string{"\r"}, ""},
		"form, all optional":     {form1(`{"type":"object","properties":{"note":{"type":"string"}}}`), []string{"\r"}, `{}`},
		"form, optional, Ctrl-D": {form1(`{"type":"object","properties":{"note":{"type":"string"}}}`), []string{ctrlD}, ""},
		"no properties, yes":     {form1(`{"type":"object","properties":{}}`), []string{"hm\r", "y\r"}, `{}`},
		"no properties, no":      {form1(`{"type":"object","properties":{}}`), []string{"n\r"}, ""},
		"no properties, empty":   {form1(`{"type":"object","properties":{}}`), []string{"\r"}, ""},
		"any properties":         {form1(`{"type":"object","properties":{},"additionalProperties":{"type":"integer"}}`), []string{"y\r", `{"a":1}` + "\r"}, `{"a":1}`},
		"one value":              {form1(`{"type":"number","maximum":5}`), []string{"9\r", "4.5\r"}, "4.5"},
		"default":                {form1(`{"type":"string","default":"x"}`), []string{"\r"}, `"x"`},
		"no choice":              {form1(`{"type":"array","items":{"type":"string"}}`), []string{"a\r", `["a"]` + "\r"}, `["a"]`},
		"several":                {form1(`{"type":"array","items":{"type":"string","enum":["a","b","c"]},"maxItems":2}`), []string{"d\r", "a,b,c\r", "c, 1, c\r"}, `["c","a"]`},
		"several, titled":        {form1(`{"type":"object","properties":{"x":{"type":"array","items":{"anyOf":[{"const":"r","title":"Red, dark"},{"const":"g","title":"Green"}]},"minItems":1}}}`), []string{"Red, dark\r"}, `{"x":["r"]}`},
		"several, default":       {form1(`{"type":"array","items":{"enum":["a","b"]},"default":["b"]}`), []string{"\r"}, `["b"]`},
		"email":                  {form1(`{"type":"string","format":"email"}`), []string{"ada\r", "ada@example.com\r"}, `"ada@example.com"`},
		"date":                   {form1(`{"type":"string","format":"date"}`), []string{"28.7.2026\r", "2026-07-28\r"}, `"2026-07-28"`},
		"date-time":              {form1(`{"type":"string","format":"date-time"}`), []string{"2026-07-28\r", "2026-07-28T12:30:00Z\r"}, `"2026-07-28T12:30:00Z"`},
		"uri":                    {form1(`{"type":"string","format":"uri"}`), []string{"example\r", "https://example.com/\r"}, `"https://example.com/"`},
		"default enum":           {form1(`{"type":"string","enum":["a","b"],"enumNames":["A","B"],"default":"b"}`), []string{"\r"}, `"b"`},
		"titles":                 {form1(`{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"}]}`), []string{"Green\r"}, `"g"`},
	} {
		t.Run(name, func(t *testing.T) {
			p := pty.New(t)
			a := ask(t, p, &Interactor{tty: p.Slave()}, test.q, test.keys...)
			got := string(a.Value)
			switch {
			case a.Always:
				got = "always"
			case a.Approve && got == "":
				got = "approve"
			case !a.Approve && got != "":
				got = "a value without approval: " + got
			}
			if got != test.want || a.By != "terminal" {
				t.Errorf("%q by %q, want %q:\n%s", got, a.By, test.want, p.Screen())
			}
			if !p.Echoes(t) {
				t.Error("the terminal was left without echo")
			}
		})
	}
}

func form1(schema string) api.Interaction {
	return api.Interaction{Kind: api.KindQuestionnaire, Prompt: "Say more", Schema: json.RawMessage(schema)}
}

// A password is asked for without echo, and the terminal never shows it.
func TestSecret(t *testing.T) {
	p := pty.New(t)
	a := ask(t, p, &Interactor{tty: p.Slave()}, api.Interaction{Kind: api.KindPassword, Prompt: "Password of the database", Secret: true}, "hun ter2\x7f3 \r")
	if string(a.Value) != `"hun ter3 "` {
		t.Errorf("got %s", a.Value)
	}
	if strings.Contains(p.Screen(), "hun") || !strings.Contains(p.Screen(), "not shown") {
		t.Errorf("the terminal shows\n%s", p.Screen())
	}
	if !p.Echoes(t) {
		t.Error("the terminal was left without echo")
	}
}

// What was typed before a question can be seen answers nothing.
func TestTypedAhead(t *testing.T) {
	p := pty.New(t)
	p.Type(t, "y\ny")
	p.Expect(t, "y", 2)
	if a := ask(t, p, &Interactor{tty: p.Slave()}, api.Interaction{Kind: api.KindApproval}, "n\r"); a.Approve {
		t.Errorf("approved:\n%s", p.Screen())
	}
}

// A question ends with its context, and gives the terminal back.
func TestNobodyAnswers(t *testing.T) {
	p := pty.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	i := &Interactor{tty: p.Slave()}
	go func() {
		_, err := i.Ask(ctx, api.Interaction{Kind: api.KindApproval, Prompt: "Really?", ExpiresAt: time.Now().Add(time.Hour)})
		done <- err
	}()
	p.Expect(t, "allow?", 1)
	p.Type(t, "y")
	p.Expect(t, "y", 2)
	cancel()
	if err := <-done; err == nil {
		t.Error("it was answered")
	}
	if !p.Echoes(t) {
		t.Error("the terminal was left without echo")
	}
	if a := ask(t, p, i, api.Interaction{Kind: api.KindApproval}, "n\r"); a.Approve {
		t.Errorf("the next question was approved:\n%s", p.Screen())
	}
}

// The time that is left is counted down beside what is being typed.
func TestCountDown(t *testing.T) {
	p := pty.New(t)
	i := &Interactor{tty: p.Slave()}
	done := make(chan error, 1)
	go func() {
		_, err := i.Ask(context.Background(), api.Interaction{Kind: api.KindApproval, ExpiresAt: time.Now().Add(time.Hour)})
		done <- err
	}()
	p.Expect(t, "(59m5", 2)
	p.Type(t, "n\r")
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// long is a question whose arguments say at their end what matters.
func long() api.Interaction {
	return api.Interaction{
		Kind: api.KindApproval, Prompt: "Run it?", Tool: "shell",
		Arguments: json.RawMessage(`{"code":"begin` + strings.Repeat("é", 1500) + "MIDDLE\x1b[2J\u202e" + strings.Repeat("é", 1500) + `; rm -rf end"}`),
	}
}

// Whatever is too long to be shown at once says so, and shows its end; v shows
// all of it, as harmless, and nothing typed before that answers.
func TestLongArguments(t *testing.T) {
	p := pty.New(t)
	a := ask(t, p, &Interactor{tty: p.Slave()}, long(), "hm\r", "v\ry\r", "n\r")
	first, second, again := strings.Cut(p.Screen(), "MIDDLE")
	contains(t, first, "(1039 of 3039 characters are left out at […]) ", "begin", "; rm -rf end", "allow? [y/n/a/v]", "v (show all of it, and ask again)")
	contains(t, second, `\x1b[2J\u202e`, "; rm -rf end", "allow? [y/n/a]")
	if a.Approve || !again || strings.Contains(second, "\u202e") {
		t.Errorf("answer %+v:\n%s", a, p.Screen())
	}
}

func contains(t *testing.T, screen string, parts ...string) {
	t.Helper()
	screen = strings.ReplaceAll(screen, "\r\n", "") // where the terminal wraps
	for _, part := range parts {
		if !strings.Contains(screen, part) {
			t.Errorf("the terminal lacks %q:\n%s", part, screen)
		}
	}
}

// What is shown whole offers no v.
func TestShortArguments(t *testing.T) {
	q := long()
	q.Arguments = json.RawMessage(`"` + strings.Repeat("é", maxShown-2) + `"`)
	p := pty.New(t)
	if a := ask(t, p, &Interactor{tty: p.Slave()}, q, "v\r", "y\r"); !a.Approve || strings.Contains(p.Screen(), "/v]") {
		t.Errorf("answer %+v:\n%s", a, p.Screen())
	}
}

// What is said of a question is what becomes of its call: after Ctrl-C the host
// cancels it, and of itself an end of input is a no.
func TestWhatIsSaidWithoutAnAnswer(t *testing.T) {
	abort := func() {}
	for _, test := range []struct {
		key         string
		interrupted func()
		want        string
	}{{interrupt, abort, "cancelled"}, {ctrlD, abort, "denied"}, {interrupt, nil, "denied"}} {
		p := pty.New(t)
		ask(t, p, &Interactor{tty: p.Slave(), Interrupted: test.interrupted}, api.Interaction{Kind: api.KindApproval}, test.key)
		p.Expect(t, "  "+test.want+"\r\n", 1)
	}
}

func TestInterruptTellsTheHost(t *testing.T) {
	p := pty.New(t)
	told := make(chan struct{})
	i := &Interactor{tty: p.Slave(), Interrupted: func() { close(told) }}
	if a := ask(t, p, i, api.Interaction{Kind: api.KindApproval}, interrupt); a.Approve {
		t.Error("approved")
	}
	<-told
}

func TestQuestionShowsNoControlCharacters(t *testing.T) {
	text := Question(api.Interaction{
		Prompt: "Run it?\n  tool  forged", Tool: "x\x1b[2J", Arguments: []byte(`{"a":"` + "\x1b]0;t\a" + `"}`), Kind: api.KindApproval,
	})
	if strings.ContainsAny(text, "\x1b\a") || strings.Contains(text, "\n  tool  forged") {
		t.Errorf("%q", text)
	}
}
