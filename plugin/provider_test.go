package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"

	"github.com/toolhost/toolhost/internal/plugin/rpc"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// echo gives its arguments back.
func echo(_ context.Context, arguments json.RawMessage, _ *Output) (json.RawMessage, error) {
	return arguments, nil
}

const anyObject = `{"type":"object"}`

func rawTool(t *testing.T, name string) Registered {
	t.Helper()
	tool, err := NewRawTool(Tool{Name: name}, json.RawMessage(anyObject), json.RawMessage(anyObject), echo)
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

func TestRawToolTakesAndGivesJSONAsItIs(t *testing.T) {
	tool := rawTool(t, "echo")
	for arguments, want := range map[string]string{
		`{"n": 12345678901234567890, "b":1,"a":2}`: `{"n": 12345678901234567890, "b":1,"a":2}`,
		"": `{}`, " \n": `{}`,
	} {
		got, err := tool.Run(t.Context(), json.RawMessage(arguments), nil)
		if err != nil || string(got) != want {
			t.Errorf("%q: %s, %v", arguments, got, err)
		}
	}
	d := tool.Describe()
	if string(d.GetInputSchema()) != anyObject || string(d.GetOutputSchema()) != anyObject || d.GetName() != "echo" {
		t.Errorf("described %v", d)
	}
}

func TestRawToolRefusesWhatCouldNeverWork(t *testing.T) {
	for _, test := range []struct {
		name, input, output string
		want                string // part of the error, "" for none
	}{
		{"fine", anyObject, "", ""},
		{"fine", anyObject, `{"type":"array"}`, ""},
		{"not fine", anyObject, "", `tool name "not fine"`},
		{"x", "", "", "input schema"},
		{"x", `{`, "", "input schema"},
		{"x", `{}`, "", `"type": "object"`},
		{"x", `{"type":["object","null"]}`, "", `"type": "object"`},
		{"x", `{"type":"object","properties":5}`, "", "input schema"},
		{"x", `{"type":"object","$ref":"http://x/y"}`, "", "input schema"},
		{"x", anyObject, `{`, "output schema"},
	} {
		_, err := NewRawTool(Tool{Name: test.name}, json.RawMessage(test.input), json.RawMessage(test.output), echo)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v", test, err)
		}
	}
	if _, err := NewRawTool(Tool{Name: "x", Title: "\xff"}, json.RawMessage(anyObject), nil, echo); err == nil {
		t.Error("took a title that is not UTF-8")
	}
}

func TestRawToolWhoseResultIsNoJSON(t *testing.T) {
	tool, err := NewRawTool(Tool{Name: "x"}, json.RawMessage(anyObject), nil,
		func(context.Context, json.RawMessage, *Output) (json.RawMessage, error) {
			return json.RawMessage("{"), nil
		})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := tool.Run(t.Context(), nil, nil); err == nil || got != nil {
		t.Errorf("%s, %v", got, err)
	}
}

// provider is a Provider whose tools a test names.
type provider struct {
	listing Listing
	err     error
}

func (p provider) Tools(context.Context) (Listing, error) { return p.listing, p.err }

func (p provider) Find(name string) (Registered, bool) {
	i := slices.IndexFunc(p.listing.Tools, func(r Registered) bool { return r.Name() == name })
	if i < 0 {
		return Registered{}, false
	}
	return p.listing.Tools[i], true
}

func TestAProvidersToolsAreDescribed(t *testing.T) {
	s := newServer(provider{listing: Listing{Version: "2\xff", Tools: []Registered{rawTool(t, "a"), rawTool(t, "b")}, Warnings: []string{"c is broken"}}})
	got, err := s.Describe(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.GetVersion() != "2\uFFFD" || len(got.GetTools()) != 2 || got.GetTools()[1].GetName() != "b" ||
		!slices.Equal(got.GetWarnings(), []string{"c is broken"}) || got.GetError() != nil {
		t.Errorf("described %v", got)
	}
}

func TestAProviderThatCannotListSaysWhy(t *testing.T) {
	for _, test := range []struct {
		err  error
		kind pluginv1.ToolError_Kind
	}{
		{errors.New("no such thing"), pluginv1.ToolError_KIND_ERROR},
		{&Failure{Kind: StartFailed, Err: errors.New("no such thing")}, pluginv1.ToolError_KIND_START_FAILED},
		{fmt.Errorf("listing: %w", &Failure{Kind: Crashed, Err: errors.New("no such thing")}), pluginv1.ToolError_KIND_CRASHED},
		{&Failure{Kind: BrokeProtocol, Err: errors.New("no such thing")}, pluginv1.ToolError_KIND_PROTOCOL},
		{&Failure{Err: errors.New("no such thing")}, pluginv1.ToolError_KIND_ERROR},
	} {
		got, err := newServer(provider{err: test.err}).Describe(t.Context(), nil)
		if err != nil || got.GetError().GetKind() != test.kind || !strings.Contains(got.GetError().GetMessage(), "no such thing") {
			t.Errorf("%v: %v, %v", test.err, got, err)
		}
	}
}

func TestAProvidersToolIsCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(provider{listing: Listing{Tools: []Registered{rawTool(t, "a")}}})
		result := startCall(t, s, &pluginv1.CallRequest{CallId: "1", Tool: "a", Arguments: []byte(`{"x":1}`)}).result(t)
		if string(result.GetStructured()) != `{"x":1}` {
			t.Errorf("result %v", result)
		}
		c := startCall(t, s, &pluginv1.CallRequest{CallId: "2", Tool: "b"})
		<-c.done
		if rpc.StatusOf(c.err).Code != codes.NotFound {
			t.Errorf("unknown tool: %v", c.err)
		}
	})
}

func TestAFailureIsTheCallsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testServer(tool("x", func(context.Context, *Output) error {
			return &Failure{Kind: Crashed, Err: errors.New("it is gone")}
		}))
		e := startCall(t, s, &pluginv1.CallRequest{Tool: "x"}).result(t).GetError()
		if e.GetKind() != pluginv1.ToolError_KIND_CRASHED || e.GetMessage() != "it is gone" {
			t.Errorf("error %v", e)
		}
	})
}

func TestUsageOfAProviderNamesNoTools(t *testing.T) {
	var b strings.Builder
	usage(&b, provider{})
	if !strings.Contains(b.String(), "started by a toolhost") {
		t.Errorf("usage: %s", b.String())
	}
}

func TestEnvironLeavesTheHandshakeOut(t *testing.T) {
	for _, name := range []string{"TOOLHOST_PLUGIN", "PLUGIN_MIN_PORT", "PLUGIN_MAX_PORT", "PLUGIN_PROTOCOL_VERSIONS", "PLUGIN_UNIX_SOCKET_DIR", "PLUGIN_CLIENT_CERT"} {
		t.Setenv(name, "x")
	}
	t.Setenv("PLUGIN_OF_MINE", "kept")
	env := Environ()
	if !slices.Contains(env, "PLUGIN_OF_MINE=kept") || len(env) != len(os.Environ())-6 {
		t.Errorf("environment %v", env)
	}
}
