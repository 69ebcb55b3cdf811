package catalog_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/internal/tools/catalog"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// What was too slow once is offered later, without being asked for, and nothing
// is asked again that has answered.
func TestRetry(t *testing.T) {
	loaded, machine := load(t, "tools: {gone: {mcp: [server, gone]}, files: {mcp: [server, files]}}")
	synctest.Test(t, func(t *testing.T) {
		host := sluggish{described(), time.Second}
		c := catalog.New(host, loaded, catalog.Options{Adapter: "/bin/toolhost", State: t.TempDir(), Machine: machine})
		began, recovered := time.Now(), 0
		go c.Retry(t.Context(), func() { recovered++ })
		if _, problems := c.All(t.Context()); len(problems) != 1 {
			t.Fatalf("problems %v", problems)
		}
		time.Sleep(time.Until(began.Add(5 * time.Minute))) // tries at 10, 31, 72, 133, 194 and 255 s
		synctest.Wait()
		if len(host.asked) != 8 || recovered != 0 {
			t.Errorf("asked %q, %d recovered", host.asked, recovered)
		}
		host.mu.Lock()
		host.tools["gone"] = []*pluginv1.ToolDescription{tool("x")}
		host.mu.Unlock()
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if len(host.asked) != 9 || recovered != 1 {
			t.Errorf("asked %q, recovered %d times", host.asked, recovered)
		}
		if tools, problems := c.All(t.Context()); len(tools) != 4 || len(problems) != 0 {
			t.Errorf("%d tools, %v", len(tools), problems)
		}
	})
}

// What somebody else's request has described is offered, too.
func TestRetryAfterSomebodyElse(t *testing.T) {
	loaded, machine := load(t, "tools: {gone: {mcp: [server, gone]}, files: {mcp: [server, files]}}")
	synctest.Test(t, func(t *testing.T) {
		host := described()
		c := catalog.New(host, loaded, catalog.Options{Adapter: "/bin/toolhost", State: t.TempDir(), Machine: machine})
		recovered := 0
		go c.Retry(t.Context(), func() { recovered++ })
		if _, problems := c.All(t.Context()); len(problems) != 1 {
			t.Fatalf("problems %v", problems)
		}
		host.tools["gone"] = []*pluginv1.ToolDescription{tool("x")}
		if _, err := c.Find(t.Context(), "gone__x"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if recovered != 1 || len(host.asked) != 3 {
			t.Errorf("recovered %d times, asked %q", recovered, host.asked)
		}
	})
}

// It ends with its context, whatever is missing.
func TestRetryEnds(t *testing.T) {
	loaded, machine := load(t, "tools: {gone: {mcp: [server, gone]}}")
	synctest.Test(t, func(t *testing.T) {
		c := catalog.New(described(), loaded, catalog.Options{Adapter: "/bin/toolhost", State: t.TempDir(), Machine: machine})
		_, _ = c.All(t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		c.Retry(ctx, func() { t.Error("nothing has recovered") })
		if took := time.Since(began); took != time.Hour {
			t.Errorf("it took %s", took)
		}
	})
}

// What is held back is offered once it is accepted, without being described anew.
func TestRetryReleases(t *testing.T) {
	loaded, machine := load(t, "tools: {files: {mcp: [server, files]}}")
	state := t.TempDir()
	options := catalog.Options{Adapter: "/bin/toolhost", State: state, Machine: machine}
	_, _ = catalog.New(described(), loaded, options).All(t.Context())
	synctest.Test(t, func(t *testing.T) {
		host := described()
		host.tools["files"][0].Description = "something else"
		name := host.tools["files"][0].GetName()
		c := catalog.New(host, loaded, options)
		tools, problems := c.All(t.Context())
		if len(problems) != 1 || len(tools) != len(host.tools["files"])-1 {
			t.Fatalf("%d tools, %v", len(tools), problems)
		}
		if found, ok := c.Offered("files__" + name); !ok || found.Held == "" {
			t.Errorf("%+v", found)
		}
		recovered := 0
		go c.Retry(t.Context(), func() { recovered++ })
		time.Sleep(5 * time.Minute)
		if recovered != 0 {
			t.Error("nobody has accepted anything")
		}
		file, _ := c.Pins(loaded.Tools[0])
		said, err := c.Said(t.Context(), loaded.Tools[0])
		if err != nil || file.Accept(said) != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if found, ok := c.Offered("files__" + name); !ok || found.Held != "" || recovered != 1 || len(host.asked) != 1 {
			t.Errorf("%+v, recovered %d times, asked %q", found, recovered, host.asked)
		}
		if tools, problems := c.All(t.Context()); len(tools) != len(host.tools["files"]) || len(problems) != 0 {
			t.Errorf("%d tools, %v", len(tools), problems)
		}
	})
}

// What a server's other lists have held back is offered once it is accepted, however long
// after the start that is.
func TestRetryReleasesWhatIsRenewed(t *testing.T) {
	loaded, machine := load(t, "tools: {files: {mcp: [server, files]}}")
	options := catalog.Options{Adapter: "/bin/toolhost", State: t.TempDir(), Machine: machine}
	synctest.Test(t, func(t *testing.T) {
		host := described()
		c := catalog.New(host, loaded, options)
		if _, problems := c.All(t.Context()); len(problems) != 0 {
			t.Fatal(problems)
		}
		recovered := 0
		go c.Retry(t.Context(), func() { recovered++ })
		time.Sleep(time.Hour)
		for n := range 2 {
			host.tools["files"][0].Description += ", or something else"
			if err := c.Renew(t.Context(), "files"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			if recovered != n {
				t.Errorf("recovered %d times, and nobody has accepted anything more than %d times", recovered, n)
			}
			file, _ := c.Pins(loaded.Tools[0])
			said, err := c.Said(t.Context(), loaded.Tools[0])
			if err != nil || file.Accept(said) != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if recovered != n+1 {
				t.Errorf("recovered %d times, and %d times was something accepted", recovered, n+1)
			}
		}
	})
}
