package catalog_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor"
)

// remembering describes what it has described before, unless it is asked anew.
type remembering struct {
	*describer
	known *supervisor.Description
}

func (r *remembering) Describe(ctx context.Context, request supervisor.Request) (*supervisor.Description, *api.Result) {
	if r.known != nil && !request.Anew {
		again := *r.known
		again.Remembered = true
		return &again, nil
	}
	d, failed := r.describer.Describe(ctx, request)
	r.known = d
	return d, failed
}

// What a host remembers of a server may be older than what was accepted: it is
// looked at again before a tool is held back for it.
func TestAcceptedSinceItWasDescribed(t *testing.T) {
	loaded, machine := load(t, "tools: {files: {mcp: [server, files]}}")
	options := catalog.Options{Adapter: "/bin/toolhost", State: t.TempDir(), Machine: machine}
	daemon := &remembering{describer: described()}
	if _, problems := catalog.New(daemon, loaded, options).All(t.Context()); len(problems) != 0 {
		t.Fatal(problems)
	}
	changed := []*pluginv1.ToolDescription{tool("other")}
	daemon.tools["files"] = changed

	command := described()
	command.tools["files"] = changed
	c := catalog.New(command, loaded, options)
	if tools, problems := c.All(t.Context()); len(tools) != 0 || len(problems) != 1 {
		t.Fatalf("%d tools, %v", len(tools), problems)
	}
	said, err := c.Said(t.Context(), loaded.Tools[0])
	if err != nil {
		t.Fatal(err)
	}
	if file, _ := c.Pins(loaded.Tools[0]); file.Accept(said) != nil {
		t.Fatal("not accepted")
	}
	tools, problems := catalog.New(daemon, loaded, options).All(t.Context()) // after a reload
	if len(tools) != 1 || tools[0].Name != "files__other" || len(problems) != 0 {
		t.Errorf("%+v, %v", tools, problems)
	}
}

// A server whose words are others at each start is helped by no acceptance, so the
// other remedy is named, too.
func TestTheRemediesForWhatIsHeldBack(t *testing.T) {
	loaded, machine := load(t, "tools: {files: {mcp: [server, files]}}")
	options := catalog.Options{Adapter: "/bin/toolhost", State: t.TempDir(), Machine: machine}
	server := described()
	for _, words := range []string{"a and b", "b and a"} {
		changing := tool("changing")
		changing.Description = words
		server.tools["files"] = []*pluginv1.ToolDescription{changing}
		_, problems := catalog.New(server, loaded, options).All(t.Context())
		if words == "a and b" {
			continue
		}
		if got := errors.Join(problems...); len(problems) != 1 || !strings.Contains(got.Error(), "it had another description when the server's tools were accepted; ") || !strings.Contains(got.Error(), "toolhost tools --accept files; for a server that says something else at each start, and is trusted, set pin: false") {
			t.Error(got)
		}
	}
}
