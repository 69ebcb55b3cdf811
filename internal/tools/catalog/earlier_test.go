package catalog_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor"
)

// slow describes once it may.
type slow struct {
	*describer
	offers *pluginv1.Server
	may    chan bool
}

func (s slow) Describe(ctx context.Context, r supervisor.Request) (*supervisor.Description, *api.Result) {
	select {
	case <-s.may:
	case <-ctx.Done():
		return nil, &api.Result{Status: api.StatusCancelled, Message: "given up"}
	}
	d, failed := s.describer.Describe(ctx, r)
	if d != nil {
		d.Server = s.offers
	}
	return d, failed
}

// While an entry is described anew, lists show what it had before, if the configuration says
// the same of that; calls wait for what it is now.
func TestWhatIsDescribedAnewIsListedAsBefore(t *testing.T) {
	before, machine := load(t, "tools: {files: {mcp: [server, files]}}")
	for _, test := range []struct {
		yaml   string
		listed int
	}{
		{"tools: {files: {mcp: [server, files], startTimeout: 40s}}", 3},
		{"tools: {files: {mcp: [other, files]}}", 0},
		{"tools: {files: {mcp: [server, files], prefix: f}}", 0},
		{"tools: {files: {mcp: [server, files], readOnly: true}}", 0},
		{"tools: {files: {mcp: [server, files], tools: {delete: {hidden: true}}}}", 0},
		{"tools: {others: {mcp: [server, files]}}", 0},
	} {
		after, _ := load(t, test.yaml)
		options := catalog.Options{Adapter: "/bin/toolhost", State: t.TempDir(), Machine: machine}
		synctest.Test(t, func(t *testing.T) {
			host := slow{described(), &pluginv1.Server{Instructions: "i"}, make(chan bool)}
			known := catalog.New(host, before, options)
			go func() { host.may <- true }()
			if tools, problems := known.All(t.Context()); len(tools) != 3 || len(problems) != 0 {
				t.Fatal(tools, problems)
			}
			between := catalog.New(host, after, options) // a reload that another one follows
			between.Inherit(known)
			c := catalog.New(host, after, options)
			c.Inherit(between)
			go func() { _, _ = c.All(t.Context()) }()
			synctest.Wait()

			over, cancel := context.WithCancel(t.Context())
			cancel()
			tools, problems := c.All(over)
			if len(tools) != test.listed || len(c.Servers()) != min(test.listed, 1) {
				t.Errorf("%s: %d tools, %d servers", test.yaml, len(tools), len(c.Servers()))
			}
			entry := after.Tools[0]
			if len(problems) != 1 || !strings.Contains(problems[0].Error(), "tool "+entry.Name+" ("+entry.Source.String()+") is not described yet") {
				t.Errorf("%s: %v", test.yaml, problems)
			}
			for _, listed := range tools {
				if called, ok := c.Offered(listed.Name); !ok || called.Describe == nil {
					t.Errorf("a call of %s goes by what it was", listed.Name)
				}
			}
			host.describer.tools["files"] = []*pluginv1.ToolDescription{tool("fresh")}
			host.may <- true
			if tools, _ := c.All(t.Context()); len(tools) > 1 || c.Servers()[0].Offers.GetInstructions() != "i" {
				t.Errorf("%s: %d tools in the end", test.yaml, len(tools))
			}
		})
	}
}

// What an entry had is over once it cannot be described any more.
func TestWhatFailsIsNotListedAsBefore(t *testing.T) {
	loaded, machine := load(t, "tools: {files: {mcp: [server, files]}}")
	options := catalog.Options{Adapter: "/bin/toolhost", State: t.TempDir(), Machine: machine}
	host := slow{described(), &pluginv1.Server{Instructions: "i"}, make(chan bool, 2)}
	host.may <- true
	host.may <- true
	known := catalog.New(host, loaded, options)
	_, _ = known.All(t.Context())
	delete(host.describer.tools, "files")
	c := catalog.New(host, loaded, options)
	c.Inherit(known)
	over, cancel := context.WithCancel(t.Context())
	_, _ = c.All(t.Context())
	cancel()
	if tools, problems := c.All(over); len(tools) != 0 || len(c.Servers()) != 0 || len(problems) != 1 || !strings.Contains(problems[0].Error(), "no such server") {
		t.Error(tools, problems)
	}
}
