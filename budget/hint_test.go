package budget

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

type hintCase struct {
	name, args, meta, declared string
	timeout                    time.Duration
	detail                     string // "" for no hint
	rest                       string // "" for args itself
	warning                    string // what the only warning contains
}

var hintCases = []hintCase{
	{name: "nothing", args: `{"a": 1}`},
	{name: "no arguments at all"},
	{name: "null arguments", args: `null`, meta: `null`},
	{name: "a declared argument stays", args: `{"a":1, "wait_ms": 5000}`, declared: "wait_ms", timeout: 5 * sec, detail: "argument wait_ms"},
	{name: "an argument that is not declared", args: `{"timeout": 5000}`},
	{name: "key beside", args: `{}`, meta: `{"dev.toolhost/timeoutMs": 5000}`, timeout: 5 * sec, detail: "_meta dev.toolhost/timeoutMs"},
	{name: "bare beside", args: `{}`, meta: `{"timeout":5000,"progressToken":1}`, timeout: 5 * sec, detail: "_meta timeout"},
	{
		name: "key inside", args: ` {"a" : 1 , "_meta": {"dev.toolhost/timeoutMs": 5000} , "b":[2, 3]} `,
		timeout: 5 * sec, detail: "_meta dev.toolhost/timeoutMs in the arguments", rest: `{"a" : 1,"b":[2, 3]}`,
	},
	{name: "bare inside, alone", args: `{"_meta":{"timeout":5000}}`, timeout: 5 * sec, detail: "_meta timeout in the arguments", rest: `{}`},
	{name: "escaped key", args: `{"\u005fmeta":{"time\u006fut":5000}}`, timeout: 5 * sec, detail: "_meta timeout in the arguments", rest: `{}`},
	{name: "_meta without a hint is taken out too", args: `{"_meta":{"x":1},"a":1}`, rest: `{"a":1}`},
	{name: "_meta that is not an object stays", args: `{"_meta":"timeout","a":1}`},
	{name: "deeper _meta stays", args: `{"a":{"_meta":{"timeout":5000}}}`},
	{name: "zero", args: `{}`, meta: `{"timeout":0}`, timeout: 0, detail: "_meta timeout"},
	{name: "negative", args: `{}`, meta: `{"timeout":-5}`, timeout: -5 * ms, detail: "_meta timeout"},
	{name: "whole number with an exponent", args: `{}`, meta: `{"timeout":3e4}`, timeout: 30 * sec, detail: "_meta timeout"},
	{name: "whole number with a point", args: `{}`, meta: `{"timeout":30000.0}`, timeout: 30 * sec, detail: "_meta timeout"},
	{name: "larger than an int64", args: `{}`, meta: `{"timeout":99999999999999999999}`, timeout: longestHint, detail: "_meta timeout"},
	{name: "larger than a float64", args: `{}`, meta: `{"timeout":1e999}`, timeout: longestHint, detail: "_meta timeout"},
	{name: "the marker's milliseconds", args: `{}`, meta: `{"timeout":9223372036854}`, timeout: longestHint, detail: "_meta timeout"},
	{name: "very negative", args: `{}`, meta: `{"timeout":-1e999}`, timeout: -longestHint, detail: "_meta timeout"},
	{name: "null is none", args: `{"t":null}`, meta: `{"timeout":null}`, declared: "t"},
	{name: "fraction", args: `{}`, meta: `{"timeout":1.5}`, warning: "timeout 1.5 in _meta timeout is not used: want a whole number of milliseconds"},
	{name: "string", args: `{"t":"5s"}`, declared: "t", warning: `timeout "5s" in argument t is not used`},
	{name: "infinite", args: `{}`, meta: `{"dev.toolhost/timeoutMs":"infinite"}`, warning: `timeout "infinite" in _meta dev.toolhost/timeoutMs is not used: only a tool's entry in the operator's config may lift it; want a whole number of milliseconds`},
	{name: "none", args: `{}`, meta: `{"timeout":"none"}`, warning: `timeout "none" in _meta timeout is not used: leave it out for the default, or give a whole number of milliseconds`},
	{name: "number in a string", args: `{"t":"5000"}`, declared: "t", warning: `timeout "5000" in argument t is not used`},
	{name: "boolean", args: `{}`, meta: `{"timeout":true}`, warning: "timeout true"},
	{name: "object", args: `{}`, meta: "{\"timeout\":{\n}}", warning: "timeout { }"},
	{
		name: "a bad one leaves the word to the next", args: `{"t":"soon"}`, meta: `{"timeout":7000}`, declared: "t",
		timeout: 7 * sec, detail: "_meta timeout", warning: `timeout "soon" in argument t`,
	},
	{
		name: "the argument before _meta", args: `{"t":5000}`, meta: `{"timeout":7000}`, declared: "t",
		timeout: 5 * sec, detail: "argument t", warning: "timeout 7s in _meta timeout is not used: argument t asks for 5s",
	},
	{
		name: "beside before inside", args: `{"_meta":{"timeout":5000}}`, meta: `{"timeout":7000}`,
		timeout: 7 * sec, detail: "_meta timeout", rest: `{}`, warning: "timeout 5s in _meta timeout in the arguments",
	},
	{
		name: "key inside before bare beside", args: `{"_meta":{"dev.toolhost/timeoutMs":5000}}`, meta: `{"timeout":5000}`,
		timeout: 5 * sec, detail: "_meta dev.toolhost/timeoutMs in the arguments", rest: `{}`,
	},
	{name: "old key beside", args: `{}`, meta: `{"toolhost.dev/timeoutMs": 5000}`, timeout: 5 * sec, detail: "_meta toolhost.dev/timeoutMs"},
	{
		name: "old key inside before bare beside", args: `{"_meta":{"toolhost.dev/timeoutMs":5000}}`, meta: `{"timeout":5000}`,
		timeout: 5 * sec, detail: "_meta toolhost.dev/timeoutMs in the arguments", rest: `{}`,
	},
	{
		name: "key before old key", args: `{}`, meta: `{"toolhost.dev/timeoutMs":7000,"dev.toolhost/timeoutMs":5000}`,
		timeout: 5 * sec, detail: "_meta dev.toolhost/timeoutMs", warning: "timeout 7s in _meta toolhost.dev/timeoutMs is not used: _meta dev.toolhost/timeoutMs asks for 5s",
	},
	{name: "both keys alike", args: `{}`, meta: `{"toolhost.dev/timeoutMs":5000,"dev.toolhost/timeoutMs":5000}`, timeout: 5 * sec, detail: "_meta dev.toolhost/timeoutMs"},
	{name: "repeated: the last counts", args: `{"t":1,"t":2000}`, declared: "t", timeout: 2 * sec, detail: "argument t"},
	{
		name: "repeated _meta: all go, the last counts", args: `{"_meta":{"timeout":1},"a":1,"a":2,"_meta":{"timeout":2000}}`,
		timeout: 2 * sec, detail: "_meta timeout in the arguments", rest: `{"a":1,"a":2}`,
	},
	{
		name: "bytes are kept", args: `{"n":12345678901234567890123.4500,"_meta":{},"s":"\u00e9<&>\/","x":1E+2}`,
		rest: `{"n":12345678901234567890123.4500,"s":"\u00e9<&>\/","x":1E+2}`,
	},
}

func TestHint(t *testing.T) {
	for _, c := range hintCases {
		t.Run(c.name, func(t *testing.T) {
			h, rest, err := Hint(json.RawMessage(c.args), json.RawMessage(c.meta), c.declared)
			if err != nil {
				t.Fatal(err)
			}
			if h.Found != (c.detail != "") || h.Timeout != c.timeout || h.Detail != c.detail {
				t.Errorf("hint %+v, want %s in %q", h, Format(c.timeout), c.detail)
			}
			if c.rest == "" {
				c.rest = c.args
			}
			if string(rest) != c.rest {
				t.Errorf("rest %s, want %s", rest, c.rest)
			}
			if len(h.Warnings) > 1 || strings.Join(h.Warnings, "") == "" != (c.warning == "") || !strings.Contains(strings.Join(h.Warnings, ""), c.warning) {
				t.Errorf("warnings %q, want %q", h.Warnings, c.warning)
			}
		})
	}
}

func TestHintRefuses(t *testing.T) {
	for _, c := range []struct{ args, meta, want string }{
		{`[1]`, ``, "cannot read arguments: want a JSON object"},
		{`"x"`, ``, "cannot read arguments: want a JSON object"},
		{`{"a":NaN}`, ``, "cannot read arguments: malformed JSON"},
		{`{"a":1`, ``, "cannot read arguments: malformed JSON"},
		{`{"a":1} {}`, ``, "cannot read arguments: malformed JSON"},
		{`{}`, `7`, "cannot read _meta: want a JSON object"},
		{`{}`, `{"timeout":Infinity}`, "cannot read _meta: malformed JSON"},
		{strings.Repeat(`{"a":`, 20_000), ``, "cannot read arguments: malformed JSON"},
		{strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat(`}`, 20_000), ``, "cannot read arguments: malformed JSON"},
	} {
		h, rest, err := Hint(json.RawMessage(c.args), json.RawMessage(c.meta), "t")
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("Hint(%.40s, %s): %v, want %q", c.args, c.meta, err, c.want)
		}
		if h.Found || string(rest) != c.args {
			t.Errorf("Hint(%.40s) gives %+v and %.40s beside its error", c.args, h, rest)
		}
	}
}

// A soft budget is read as a timeout is.
func TestSoftHint(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"100": 100 * time.Millisecond, "1e2": 100 * time.Millisecond, "100.0": 100 * time.Millisecond, "1e30": longestHint, "0": 0, "null": 0,
		"1.5": -1, `"100"`: -1, "-5": -1, "[1]": -1,
	} {
		asks, warnings := SoftHint(json.RawMessage(`{"timeout":7,"` + SoftMetaKey + `":` + value + `}`))
		switch {
		case want < 0:
			if asks != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "soft budget "+value+" in _meta "+SoftMetaKey+" is not used") {
				t.Errorf("%s: %+v, %q", value, asks, warnings)
			}
		case warnings != nil || (want > 0) != (len(asks) == 1) || want > 0 && (asks[0].Soft != want || !asks[0].TimeoutUnset):
			t.Errorf("%s: %+v, %q, want %s", value, asks, warnings, want)
		}
	}
	if asks, _ := SoftHint(json.RawMessage(`{"toolhost.dev/softBudgetMs":9}`)); len(asks) != 1 || asks[0].Soft != 9*ms {
		t.Errorf("by its old name: %+v", asks)
	}
	for _, meta := range []string{"", "null", "{}", "[]", "{"} {
		if asks, warnings := SoftHint(json.RawMessage(meta)); asks != nil || warnings != nil {
			t.Errorf("%q: %+v, %q", meta, asks, warnings)
		}
	}
}

func TestHintHandsMetaOn(t *testing.T) {
	h, _, err := Hint(json.RawMessage(`{"_meta": {"progressToken": 7}}`), nil, "")
	if err != nil || string(h.Meta) != `{"progressToken": 7}` {
		t.Errorf("meta %s, %v", h.Meta, err)
	}
}

func TestHintLeavesItsInputAlone(t *testing.T) {
	const text = `{"a":1,"_meta":{"timeout":5000},"b":2}`
	args := json.RawMessage(text)
	if _, _, err := Hint(args, nil, ""); err != nil || string(args) != text {
		t.Errorf("arguments are now %s, %v", args, err)
	}
}

func TestHintWarningsAreBounded(t *testing.T) {
	args, _ := json.Marshal(map[string]string{"t": strings.Repeat("long\n", 10_000)})
	h, _, err := Hint(args, nil, "t")
	if err != nil || len(h.Warnings) != 1 || len(h.Warnings[0]) > 200 {
		t.Errorf("warnings %.300q, %v", h.Warnings, err)
	}
}

func FuzzHint(f *testing.F) {
	for _, c := range hintCases {
		f.Add([]byte(c.args), []byte(c.meta), c.declared)
	}
	f.Fuzz(func(t *testing.T, args, meta []byte, declared string) {
		before := bytes.Clone(args)
		h, rest, err := Hint(args, meta, declared)
		if !bytes.Equal(before, args) {
			t.Fatalf("arguments changed from %s to %s", before, args)
		}
		if err != nil {
			return
		}
		checkResolution(t, toolCall(), h.Asks())
		if h.Meta == nil {
			if !bytes.Equal(rest, args) {
				t.Fatalf("%s became %s without need", args, rest)
			}
			return
		}
		checkRest(t, args, rest)
	})
}

// checkRest compares with encoding/json: all is as before, only _meta is gone.
func checkRest(t *testing.T, args, rest []byte) {
	t.Helper()
	var a, r map[string]json.RawMessage
	if err := json.Unmarshal(args, &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(rest, &r); err != nil {
		t.Fatalf("rest %s of %s: %v", rest, args, err)
	}
	if isObject(r["_meta"]) {
		t.Fatalf("rest %s of %s has _meta", rest, args)
	}
	delete(a, "_meta")
	delete(r, "_meta")
	if !reflect.DeepEqual(a, r) {
		t.Fatalf("rest %s of %s", rest, args)
	}
}
