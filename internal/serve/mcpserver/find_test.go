package mcpserver

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/stage"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/turn"
)

func short() setup { return setup{Config: Config{Search: true}} }

// by calls a tool of the short list.
func by(caller, tool string, in any) *mcpsdk.CallToolParams {
	return &mcpsdk.CallToolParams{Name: caller, Arguments: map[string]any{"name": tool, "arguments": in}}
}

func foundFor(t *testing.T, c *mcpsdk.ClientSession, arguments map[string]any) (found foundTools) {
	t.Helper()
	r := invoke(t, c, &mcpsdk.CallToolParams{Name: findTool, Arguments: arguments})
	if err := json.Unmarshal([]byte(text(r)), &found); err != nil || r.IsError || r.StructuredContent != nil {
		t.Fatalf("%v: %s", err, text(r))
	}
	return found
}

// The short list is the same for everybody, whatever the tools are and become.
func TestShortList(t *testing.T) {
	t.Parallel()
	ofEachKind(t, func(t *testing.T, k kind) {
		listing := make(chan struct{})
		with := short()
		with.listing = listing
		s := newServer(t, with)
		var lists []string
		look := func() {
			listed, err := connect(t, s, k, nil).ListTools(wait.Context(t), nil)
			if err != nil {
				t.Fatal(err)
			}
			raw, _ := json.Marshal(listed.Tools)
			lists = append(lists, string(raw))
			if len(listed.Tools) != 5 {
				t.Errorf("%d tools: %s", len(listed.Tools), raw)
			}
		}
		look() // before any tool is known
		close(listing)
		look()
		own, _ := changeable.Load(s)
		own.(*offeredTools).hide("say")
		s.Reload(t.Context())
		look()
		if lists[0] != lists[1] || lists[1] != lists[2] {
			t.Errorf("lists %q", lists)
		}
	})
}

// A tool is called by the one that its kind has, and by no other; nothing runs
// otherwise.
func TestCallByKind(t *testing.T) {
	t.Parallel()
	ofEachKind(t, func(t *testing.T, k kind) {
		h := says("accept", nil)
		c := connect(t, newServer(t, short()), k, h.options())
		for tool, right := range map[string]string{"say": callRead, "blocks": callWrite, "wipe": callDestructive} {
			for _, caller := range []string{callRead, callWrite, callDestructive} {
				r := invoke(t, c, by(caller, tool, arguments{}))
				own := execution(t, r)
				if caller == right && (own.Status != api.StatusOK || own.Tool != tool) {
					t.Errorf("%s by %s: %s", tool, caller, text(r))
				}
				if caller != right && (own.Status != api.StatusInvalidArgs || !r.IsError || !strings.Contains(text(r), "use "+right)) {
					t.Errorf("%s by %s: %s: %s", tool, caller, own.Status, text(r))
				}
			}
		}
		if h.times() != 1 {
			t.Errorf("asked %d times", h.times())
		}
		if _, err := c.CallTool(wait.Context(t), params("say", arguments{})); err == nil {
			t.Error("a tool can be called past the list")
		}
	})
}

// What holds for a tool holds however it is called.
func TestShortListKeepsTheRules(t *testing.T) {
	t.Parallel()
	with := short()
	with.adjust = func(t *catalog.Tool) {
		switch t.Name {
		case "fail":
			t.Mode = turn.ModeDeny
		case "blocks":
			t.Destructive = true
		}
	}
	h := says("decline", nil)
	c := connect(t, newServer(t, with), kinds[0], h.options())
	if r := invoke(t, c, by(callRead, "say", map[string]any{"text": 5})); execution(t, r).Status != api.StatusInvalidArgs {
		t.Errorf("a wrong argument: %s", text(r))
	}
	if r := invoke(t, c, by(callRead, "say", arguments{Text: "hello"})); text(r) != "hello" || fmt.Sprint(r.StructuredContent) != "map[text:hello]" {
		t.Errorf("%+v", r)
	}
	if r := invoke(t, c, by(callWrite, "fail", arguments{})); execution(t, r).Status != api.StatusDenied {
		t.Errorf("a denied one: %s", text(r))
	}
	if r := invoke(t, c, by(callDestructive, "blocks", arguments{})); execution(t, r).Status != api.StatusDenied || h.times() != 1 || !strings.Contains(h.asked[0].Message, "blocks") {
		t.Errorf("one that nobody has approved: %s, asked %d times", text(r), h.times())
	}
	if r := invoke(t, c, by(callWrite, "blocks", arguments{})); execution(t, r).Status != api.StatusInvalidArgs || h.times() != 1 {
		t.Errorf("one of the operator's kind: %s", text(r))
	}
	for range 4 {
		invoke(t, c, by(callRead, "say", arguments{Text: "again"}))
	}
	if r := invoke(t, c, by(callRead, "say", arguments{Text: "again"})); execution(t, r).Status != api.StatusDenied {
		t.Errorf("the fifth call in a row: %s", text(r))
	}
}

func TestCallsOfTheShortListThatAreNone(t *testing.T) {
	t.Parallel()
	c := connect(t, newServer(t, short()), kinds[0], nil)
	for name, one := range map[string]struct {
		arguments any
		want      string
	}{
		"nothing":     {map[string]any{}, "name must be the name of a tool"},
		"a number":    {map[string]any{"name": 5}, "name must be the name of a tool"},
		"a long name": {map[string]any{"name": strings.Repeat("x", 1<<20)}, "name must be the name of a tool"},
		"unknown":     {map[string]any{"name": "nosuch"}, `no tool "nosuch"`},
		"itself":      {map[string]any{"name": callRead}, `no tool "call_read"`},
		"status":      {map[string]any{"name": turn.StatusTool}, "by its own name"},
		"beside":      {map[string]any{"name": "say", "text": "x"}, `unknown key "text"`},
		"spelling":    {map[string]any{"name": "say", "Name": "wipe"}, `unknown key "Name"`},
		"no object":   {map[string]any{"name": "say", "arguments": "{}"}, "object"},
		"a list":      {map[string]any{"name": "say", "arguments": []int{1}}, "object"},
	} {
		r := invoke(t, c, &mcpsdk.CallToolParams{Name: callRead, Arguments: one.arguments})
		if own := execution(t, r); !r.IsError || own.Status != api.StatusInvalidArgs || !strings.Contains(text(r), one.want) || len(text(r)) > 1000 {
			t.Errorf("%s: %s: %.300s", name, own.Status, text(r))
		}
	}
	if r := invoke(t, c, &mcpsdk.CallToolParams{Name: findTool, Arguments: map[string]any{"query": 5}}); !r.IsError {
		t.Errorf("%s", text(r))
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	c := connect(t, newServer(t, short()), kinds[0], nil)
	all := foundFor(t, c, nil)
	if len(all.Tools) != 6 || all.More != 0 || all.Tools[0].InputSchema != nil {
		t.Errorf("all: %+v", all)
	}
	one := foundFor(t, c, map[string]any{"query": "wipe"})
	if len(one.Tools) != 1 || one.Tools[0].Name != "wipe" || one.Tools[0].Call != callDestructive || one.Tools[0].InputSchema == nil {
		t.Errorf("wipe: %+v", one)
	}
	if by := foundFor(t, c, map[string]any{"query": "SAYS it"}); len(by.Tools) == 0 || by.Tools[0].Name != "say" || by.Tools[0].Call != callRead {
		t.Errorf("by its description: %+v", by)
	}
	if none := foundFor(t, c, map[string]any{"query": "xyzzy"}); len(none.Tools) != 0 || none.Note == "" {
		t.Errorf("none: %+v", none)
	}
}

// What is found is bounded, however many tools there are.
func TestFindIsBounded(t *testing.T) {
	stage.Whole(t)
	offered := map[string]offer{}
	for i := range 1000 {
		name := fmt.Sprintf("tool_%04d", i)
		offered[name] = offer{caller: callRead, tool: &mcpsdk.Tool{
			Name: name, Description: strings.Repeat("many words ", 1000), InputSchema: json.RawMessage(`{"type":"object"}`),
		}}
	}
	for _, query := range []string{"", "words", strings.Repeat("many ", 1<<16)} {
		found := foundAmong(offered, query)
		raw, err := json.Marshal(found)
		if err != nil || len(raw) > maxFoundBytes+(16<<10) || found.More+len(found.Tools) != 1000 || found.Note == "" {
			t.Errorf("%.10q: %d bytes of %d tools and %d more, %v", query, len(raw), len(found.Tools), found.More, err)
		}
	}
	if found := foundAmong(offered, "TOOL_0471"); found.Tools[0].Name != "tool_0471" {
		t.Errorf("%+v", found.Tools[0].Name)
	}
}
