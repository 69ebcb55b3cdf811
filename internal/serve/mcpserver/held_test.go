package mcpserver

import (
	"context"
	"slices"
	"strings"
	"testing"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/internal/tools/catalog"
)

// A tool that is held back is neither listed nor found nor called, and is once
// it is accepted.
func TestHeldBack(t *testing.T) {
	t.Parallel()
	for i := range 4 {
		search, reload := i%2 == 0, i/2 == 0
		s := newServer(t, setup{Config: Config{Search: search}, adjust: func(tool *catalog.Tool) {
			if tool.Name == "say" {
				tool.Held = "it had another description"
			}
		}})
		c := connect(t, s, kinds[0], nil)
		call := params("say", arguments{Text: "x"})
		if search {
			call = by(callRead, "say", arguments{Text: "x"})
			if found := foundFor(t, c, map[string]any{"query": "say"}); len(found.Tools) > 0 {
				t.Errorf("found %+v", found)
			}
		}
		listed, err := c.ListTools(wait.Context(t), nil)
		if err != nil || slices.ContainsFunc(listed.Tools, func(tool *mcpsdk.Tool) bool { return tool.Name == "say" }) {
			t.Errorf("%v, listed %+v", err, listed)
		}
		if r := invoke(t, c, call); execution(t, r).Status != api.StatusDenied || execution(t, r).Reason != api.ReasonPolicy || !strings.Contains(text(r), "held back: it had another description") {
			t.Errorf("called: %+v", r)
		}
		own, _ := changeable.Load(s)
		own.(*offeredTools).release("say")
		if reload {
			s.Reload(t.Context())
		}
		if r := invoke(t, c, call); r.IsError || text(r) != "x" {
			t.Errorf("accepted: %s", text(r))
		}
	}
}

// A call by name of a tool that has been accepted has it listed, and clients are told.
func TestHeldBackToolIsAnnounced(t *testing.T) {
	t.Parallel()
	s := newServer(t, setup{adjust: func(tool *catalog.Tool) {
		if tool.Name == "say" {
			tool.Held = "it had another description"
		}
	}})
	<-s.loaded
	changed := make(chan struct{}, 16)
	c := connect(t, s, kinds[0], &mcpsdk.ClientOptions{ToolListChangedHandler: func(context.Context, *mcpsdk.ToolListChangedRequest) { changed <- struct{}{} }})
	own, _ := changeable.Load(s)
	own.(*offeredTools).release("say")
	if r := invoke(t, c, params("say", arguments{Text: "x"})); r.IsError {
		t.Fatal(text(r))
	}
	select {
	case <-changed:
	case <-wait.Context(t).Done():
		t.Error("nobody was told")
	}
}

func (o *offeredTools) release(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.tools {
		if o.tools[i].Name == name {
			o.tools[i].Held = ""
		}
	}
}
