package catalog_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/internal/catalog"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// What was too slow once is offered later, without being asked for, and nothing
// is asked again that has answered.
func TestRetry(t *testing.T) {
	loaded, machine := load(t, "tools: {gone: {mcp: [server, gone]}, files: {mcp: [server, files]}}")
	synctest.Test(t, func(t *testing.T) {
		host := sluggish{described(), time.Second}
		c := catalog.New(host, loaded, catalog.Options{Adapter: "/bin/toolhost", State: "/none", Machine: machine})
		began, recovered, over := time.Now(), 0, time.Time{}
		go func() {
			c.Retry(t.Context(), func() { recovered++ })
			over = time.Now()
		}()
		if _, problems := c.All(t.Context()); len(problems) != 1 {
			t.Fatalf("problems %v", problems)
		}
		time.Sleep(time.Until(began.Add(5 * time.Minute))) // tries at 10, 31, 72, 133, 194 and 255 s
		synctest.Wait()
		if len(host.asked) != 8 || recovered != 0 || !over.IsZero() {
			t.Errorf("asked %q, %d recovered, over %s", host.asked, recovered, over)
		}
		host.mu.Lock()
		host.tools["gone"] = []*pluginv1.ToolDescription{tool("x")}
		host.mu.Unlock()
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if len(host.asked) != 9 || recovered != 1 || over.IsZero() {
			t.Errorf("asked %q, recovered %d times, over %s", host.asked, recovered, over)
		}
		if tools, problems := c.All(t.Context()); len(tools) != 4 || len(problems) != 0 {
			t.Errorf("%d tools, %v", len(tools), problems)
		}
	})
}

// It ends with its context, whatever is missing.
func TestRetryEnds(t *testing.T) {
	loaded, machine := load(t, "tools: {gone: {mcp: [server, gone]}}")
	synctest.Test(t, func(t *testing.T) {
		c := catalog.New(described(), loaded, catalog.Options{Adapter: "/bin/toolhost", State: "/none", Machine: machine})
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
