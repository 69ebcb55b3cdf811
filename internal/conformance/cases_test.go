package conformance

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
)

func TestParseCases(t *testing.T) {
	c, err := ParseCases("x.yaml", []byte(`
cases:
  - {tool: a, args: {n: 3, deep: {list: [1, "2"]}}, timeout: 1m}
  - {name: wait, long: true, partial: true}
  - {args: {x: 1}, expect: error, text: no}
sandbox: {read: [.], network: host}
`))
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.of("a", false)
	if err != nil || len(a) != 1 || a[0].Arguments != `{"deep":{"list":[1,"2"]},"n":3}` || a[0].TimeoutMs != 60_000 || a[0].Expect != expectOK || a[0].Name != a[0].Arguments {
		t.Errorf("of a: %+v, %v", a, err)
	}
	b, err := c.of("b", true)
	if err != nil || len(b) != 2 || b[0].Name != "wait" || b[0].Arguments != "{}" || b[0].Expect != "" || b[1].Expect != expectError || b[1].TimeoutMs != 10_000 {
		t.Errorf("of b: %+v, %v", b, err)
	}
	if c.Sandbox.Network != "host" || len(c.Sandbox.Read) != 1 {
		t.Errorf("sandbox %+v", c.Sandbox)
	}
}

func TestCasesMayBeJSONOrNothing(t *testing.T) {
	for _, text := range []string{`{"cases":[{"args":{"a":1}}]}`, "", "{}"} {
		if _, err := ParseCases("x", []byte(text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestBadCases(t *testing.T) {
	for text, want := range map[string]string{
		"cases:\n  - {tol: a}":                         `x.yaml: [2:6] unknown field "tol"`,
		"cases: 3":                                     "[1:8]",
		"cases:\n  - {args: [1]}":                      "[2:",
		"cases:\n  - {expect: maybe}":                  `case 1 in x.yaml: expect "maybe" is unknown: give ok or error`,
		"cases:\n  - {long: true, expect: ok}":         "contradict",
		"cases:\n  - {}\n  - {partial: true}":          "case 2 in x.yaml: partial is for",
		"cases:\n  - {timeout: soon}":                  `timeout "soon"`,
		"cases:\n  - {timeout: 1h}":                    "up to 10m0s",
		"cases: [" + strings.Repeat("{}, ", 257) + "]": "at most 256",
	} {
		_, err := ParseCases("x.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
}

func TestParseCall(t *testing.T) {
	c, err := ParseCall(`say={"text":"a=b"}`)
	if err != nil || c.Tool != "say" || c.Args["text"] != "a=b" {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := ParseCall(` {"text":"x"}`); err != nil || c.Tool != "" || c.Args["text"] != "x" {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := ParseCall(`{"id":1234567890123456789,"big":1e21}`); err != nil {
		t.Error(err)
	} else if made, err := c.call(1); err != nil || made.Arguments != `{"big":1e21,"id":1234567890123456789}` {
		t.Errorf("%s, %v", made.Arguments, err)
	}
	for _, text := range []string{"say", "say=", "say=[1]", "{", `{"a":1}}`, `{} {}`} {
		if _, err := ParseCall(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

// What a case says of an error's text holds also where the arguments are refused.
func TestTextOfARefusedCase(t *testing.T) {
	c := call{Name: "c", Expect: expectError, Text: "name is required"}
	r := &api.Result{Status: api.StatusInvalidArgs, Message: "[INVALID] name is required"}
	if f := judgeResult(c, r); f.Status != Pass {
		t.Errorf("%+v", f)
	}
	c.Text = "anything else"
	if f := judgeResult(c, r); f.Status != Fail {
		t.Errorf("%+v", f)
	}
}
