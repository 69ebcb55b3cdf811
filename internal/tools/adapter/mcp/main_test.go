package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/plugin"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

const roleWord = "mcp-test-server:"

// The test binary plays the servers, and, started by a supervisor, the adapter.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if role, ok := strings.CutPrefix(os.Args[1], roleWord); ok {
			play(role)
			os.Exit(0)
		}
	}
	if os.Getenv("TOOLHOST_PLUGIN") != "" {
		Serve(Options{Name: "test", StartTimeout: hangLimit}, os.Args[1:])
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

var self = func() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}()

// hangLimit is only there to end a test that hangs.
const hangLimit = wait.Bound

// argv starts a server of the test binary's.
func argv(role string) []string { return []string{self, roleWord + role} }

func startAdapter(t *testing.T, o Options, argv ...string) *adapter {
	t.Helper()
	if o.StartTimeout == 0 {
		o.StartTimeout = hangLimit
	}
	o.Name = "test"
	a := newAdapter(o, argv)
	t.Cleanup(a.close)
	return a
}

// server is an adapter of a server that the test binary plays.
func server(t *testing.T, role string) *adapter {
	t.Helper()
	return startAdapter(t, Options{}, argv(role)...)
}

// record is what a call sent.
type record struct {
	mu     sync.Mutex
	events []*pluginv1.CallEvent
}

func (r *record) send(event *pluginv1.CallEvent) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, proto.CloneOf(event))
	return nil
}

// list has a line for each event.
func (r *record) list() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, event := range r.events {
		out = append(out, line(event))
	}
	return out
}

func line(event *pluginv1.CallEvent) string {
	switch e := event.GetEvent().(type) {
	case *pluginv1.CallEvent_Progress:
		if e.Progress.Fraction == nil {
			return "progress ? " + e.Progress.GetMessage()
		}
		return fmt.Sprintf("progress %g %s", e.Progress.GetFraction(), e.Progress.GetMessage())
	case *pluginv1.CallEvent_Log:
		return "log " + e.Log.GetMessage()
	}
	switch c := event.GetContent().GetContent().(type) {
	case *pluginv1.Content_Text:
		return "text " + c.Text
	case *pluginv1.Content_Blob:
		return fmt.Sprintf("blob %s %q", c.Blob.GetMimeType(), c.Blob.GetData())
	case *pluginv1.Content_Resource:
		return fmt.Sprintf("resource %s %s %q", c.Resource.GetUri(), c.Resource.GetMimeType(), c.Resource.GetText()+string(c.Resource.GetBlob()))
	case *pluginv1.Content_Link:
		return fmt.Sprintf("link %s %s %s", c.Link.GetUri(), c.Link.GetName(), c.Link.GetMimeType())
	}
	return event.String()
}

func (r *record) text() string { return strings.Join(r.list(), "\n") }

// await waits for an event of which the text is a part.
func (r *record) await(t *testing.T, part string) {
	t.Helper()
	wait.Until(t, "the event "+part, func() bool { return strings.Contains(r.text(), part) })
}

// outcome is how a call ended.
type outcome struct {
	structured json.RawMessage
	err        error
}

// begin calls a tool as plugin.Serve would.
func begin(ctx context.Context, a *adapter, tool, arguments string) (*record, <-chan outcome) {
	r, done := new(record), make(chan outcome, 1)
	go func() {
		found, ok := a.Find(tool)
		if !ok {
			done <- outcome{err: fmt.Errorf("no tool %q", tool)}
			return
		}
		structured, err := found.Run(ctx, json.RawMessage(arguments), plugin.NewOutput(r.send))
		done <- outcome{structured, err}
	}()
	return r, done
}

func ended(t *testing.T, done <-chan outcome) outcome {
	t.Helper()
	select {
	case o := <-done:
		return o
	case <-time.After(hangLimit):
		t.Fatal("the call hangs")
		return outcome{}
	}
}

func call1(t *testing.T, a *adapter, tool, arguments string) (*record, outcome) {
	t.Helper()
	r, done := begin(t.Context(), a, tool, arguments)
	return r, ended(t, done)
}

func listTools(t *testing.T, a *adapter) (plugin.Listing, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hangLimit)
	defer cancel()
	return a.Tools(ctx)
}
