package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/turn"
)

func TestTools(t *testing.T) {
	c := connect(t, newServer(t, setup{}), kinds[0], nil)
	listed, err := c.ListTools(wait.Context(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*mcpsdk.Tool{}
	for _, tool := range listed.Tools {
		byName[tool.Name] = tool
	}
	say := byName["say"]
	if say == nil || say.Title != "Say it" || say.Description != "Says it." || say.OutputSchema == nil || !say.Annotations.ReadOnlyHint || say.Annotations.Title != say.Title {
		t.Errorf("say: %+v", say)
	}
	if a := byName["wipe"].Annotations; a == nil || a.DestructiveHint == nil || !*a.DestructiveHint {
		t.Errorf("wipe: %+v", a)
	}
	if tool := byName["blocks"]; tool.Annotations == nil || tool.Annotations.OpenWorldHint == nil || tool.OutputSchema != nil {
		t.Errorf("blocks: %+v", tool)
	}
	if byName["session_status"] == nil {
		t.Error("no session_status")
	}
}

func TestResultBesideAToolsOwn(t *testing.T) {
	c := connect(t, newServer(t, setup{}), kinds[0], nil)
	r := invoke(t, c, params("say", arguments{Text: "hello"}))
	structured, _ := json.Marshal(r.StructuredContent)
	if r.IsError || text(r) != "hello" || string(structured) != `{"text":"hello"}` {
		t.Errorf("%+v, structured %s", r, structured)
	}
	if own := execution(t, r); own.Status != api.StatusOK || own.Tool != "say" || own.TurnID == "" || own.Sandbox.Tier != "native" {
		t.Errorf("execution %+v", own)
	}
	r = invoke(t, c, params("fail", arguments{}))
	if own := execution(t, r); !r.IsError || r.StructuredContent != nil || own.Status != api.StatusToolError || !strings.Contains(text(r), "it does not work") {
		t.Errorf("%+v", r)
	}
}

func TestBlocks(t *testing.T) {
	t.Parallel()
	c := connect(t, newServer(t, setup{}), kinds[0], nil)
	r := invoke(t, c, params("blocks", arguments{}))
	var kinds []string
	for _, block := range r.Content {
		switch b := block.(type) {
		case *mcpsdk.TextContent:
			kinds = append(kinds, "text")
		case *mcpsdk.ImageContent:
			kinds = append(kinds, b.MIMEType+"="+string(b.Data))
		case *mcpsdk.AudioContent:
			kinds = append(kinds, b.MIMEType+"="+string(b.Data))
		case *mcpsdk.EmbeddedResource:
			kinds = append(kinds, b.Resource.MIMEType+"="+string(b.Resource.Blob))
		case *mcpsdk.ResourceLink:
			kinds = append(kinds, b.URI)
		}
	}
	want := []string{"text", "image/png=picture", "audio/wav=sound", "application/zip=files", "https://example.org/"}
	if !slices.Equal(kinds, want) || !strings.Contains(text(r), `{"n":1}`) {
		t.Errorf("blocks %q, text %q", kinds, text(r))
	}
	if own := execution(t, r); r.StructuredContent != nil || own.Status != api.StatusOK || len(own.Content) != 0 {
		t.Errorf("execution %+v, structured %v", own, r.StructuredContent)
	}
}

// Clients of older versions throw away a result with a block that they do not
// know.
func TestBlocksOfOldVersions(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"2024-11-05": "text image text resource text",
		"2025-03-26": "text image audio resource text",
		"2025-06-18": "text image audio resource link",
	} {
		for _, http := range []bool{false, true} {
			c := connect(t, newServer(t, setup{}), kind{version: version, http: http}, nil)
			r := invoke(t, c, params("blocks", arguments{}))
			names := map[string]string{"*mcp.TextContent": "text", "*mcp.ImageContent": "image", "*mcp.AudioContent": "audio", "*mcp.EmbeddedResource": "resource", "*mcp.ResourceLink": "link"}
			var got []string
			for _, block := range r.Content {
				got = append(got, names[fmt.Sprintf("%T", block)])
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s: %q, want %q", version, got, want)
			}
			if link := strings.HasSuffix(text(r), "https://example.org/"); link != (version < linkSince) {
				t.Errorf("%s: %q", version, text(r))
			}
			if sound := strings.Contains(text(r), "[audio/wav of 5 bytes is left out: "); sound != (version < audioSince) {
				t.Errorf("%s: %q", version, text(r))
			}
		}
	}
}

func TestWrongArguments(t *testing.T) {
	c := connect(t, newServer(t, setup{}), kinds[0], nil)
	r := invoke(t, c, &mcpsdk.CallToolParams{Name: "say", Arguments: map[string]any{"text": 5}})
	if own := execution(t, r); !r.IsError || own.Status != api.StatusInvalidArgs || !strings.HasPrefix(text(r), "[FAILED]") {
		t.Errorf("%+v", r)
	}
	if _, err := c.CallTool(wait.Context(t), params("nosuch", arguments{})); err == nil || !strings.Contains(err.Error(), "unknown tool") {
		t.Errorf("%v", err)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	ofEachKind(t, func(t *testing.T, k kind) {
		s := newServer(t, setup{})
		c := connect(t, s, k, nil)
		mark := newMark()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := c.CallTool(ctx, params("hang", arguments{Mark: mark}))
			done <- err
		}()
		waitAlive(t, mark)
		cancel()
		if err := <-done; err == nil {
			t.Error("a cancelled call has a result")
		}
		waitGone(t, mark)
		if r := invoke(t, c, params("say", arguments{Text: "still there"})); text(r) != "still there" {
			t.Errorf("the next call: %s", text(r))
		}
	})
}

// A call that waits in line behind an exclusive one never begins if it is
// cancelled there.
func TestCancelInLine(t *testing.T) {
	t.Parallel()
	s := newServer(t, setup{})
	c := connect(t, s, kinds[0], nil)
	first, second := newMark(), newMark()
	ctx, cancel := context.WithCancel(t.Context())
	both, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { _, _ = c.CallTool(both, params("hang", arguments{Mark: first})) })
	waitAlive(t, first)
	all.Go(func() { _, _ = c.CallTool(ctx, params("hang", arguments{Mark: second})) })
	running := func() int { return len(s.running()) }
	wait.Until(t, "the second one waits", func() bool { return running() == 2 })
	cancel()
	wait.Until(t, "the second one is over", func() bool { return running() == 1 })
	if !alive(first) || alive(second) {
		t.Error("the wrong one was ended")
	}
	stop()
	all.Wait()
	waitGone(t, first)
}

func TestDisconnect(t *testing.T) {
	t.Parallel()
	ofEachKind(t, func(t *testing.T, k kind) {
		s := newServer(t, setup{})
		mark := newMark()
		var cut func()
		var c *mcpsdk.ClientSession
		if k.http {
			transport := overHTTP(t, s)
			wires := &http.Transport{}
			transport.HTTPClient = &http.Client{Transport: wires}
			var open sync.Map
			wires.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				connection, err := new(net.Dialer).DialContext(ctx, network, address)
				open.Store(connection, true)
				return connection, err
			}
			cut = func() {
				open.Range(func(connection, _ any) bool { _ = connection.(net.Conn).Close(); return true })
			}
			c = connectTo(t, transport, k, nil)
		} else {
			ours, theirs := mcpsdk.NewInMemoryTransports()
			if _, err := s.sdk.Connect(t.Context(), ours, nil); err != nil {
				t.Fatal(err)
			}
			wire := &cuttable{Transport: theirs}
			cut = func() { _ = wire.connection.Close() }
			c = connectTo(t, wire, k, nil)
		}
		go func() { _, _ = c.CallTool(t.Context(), params("hang", arguments{Mark: mark})) }()
		waitAlive(t, mark)
		cut() // without a word
		waitGone(t, mark)
	})
}

// cuttable is a transport whose connection can be cut.
type cuttable struct {
	mcpsdk.Transport
	connection mcpsdk.Connection
}

func (w *cuttable) Connect(ctx context.Context) (mcpsdk.Connection, error) {
	connection, err := w.Transport.Connect(ctx)
	w.connection = connection
	return connection, err
}

func TestProgress(t *testing.T) {
	t.Parallel()
	ofEachKind(t, func(t *testing.T, k kind) {
		var mu sync.Mutex
		var told []*mcpsdk.ProgressNotificationParams
		c := connect(t, newServer(t, setup{}), k, &mcpsdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcpsdk.ProgressNotificationClientRequest) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, r.Params)
		}})
		p := params("hang", arguments{Mark: newMark()})
		p.SetProgressToken("token")
		timedOut(t, c, p)
		wait.Until(t, "the progress that was sent before the result is handled", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.ContainsFunc(told, func(one *mcpsdk.ProgressNotificationParams) bool {
				return one.ProgressToken == "token" && one.Message == "half" && one.Total > one.Progress && one.Progress > 0
			})
		})
		mu.Lock()
		defer mu.Unlock()
		if !slices.IsSortedFunc(told, func(a, b *mcpsdk.ProgressNotificationParams) int {
			if a.Progress < b.Progress {
				return -1
			}
			return 1
		}) {
			t.Errorf("progress goes back: %+v", told)
		}
	})
}

func TestReloadTellsClients(t *testing.T) {
	t.Parallel()
	ofEachKind(t, func(t *testing.T, k kind) {
		s := newServer(t, setup{})
		changed := make(chan struct{}, 16)
		c := connect(t, s, k, &mcpsdk.ClientOptions{ToolListChangedHandler: func(context.Context, *mcpsdk.ToolListChangedRequest) { changed <- struct{}{} }})
		has := func(name string) bool {
			listed, err := c.ListTools(wait.Context(t), nil)
			if err != nil {
				t.Fatal(err)
			}
			return slices.ContainsFunc(listed.Tools, func(one *mcpsdk.Tool) bool { return one.Name == name })
		}
		if !has("wipe") {
			t.Fatal("no wipe")
		}
		offered, _ := changeable.Load(s)
		offered.(*offeredTools).hide("wipe")
		s.Reload(t.Context())
		select {
		case <-changed:
		case <-wait.Context(t).Done():
			t.Fatal("nobody was told")
		}
		if has("wipe") || !has("say") {
			t.Error("the list is the old one")
		}
	})
}

// A call waits for its own tool, not for all that hang while they are described.
func TestACallWaitsForNoOtherTool(t *testing.T) {
	ofEachKind(t, func(t *testing.T, k kind) {
		listing := make(chan struct{})
		s := newServer(t, setup{listing: listing})
		c := connect(t, s, k, nil)
		for _, name := range []string{"say", turn.StatusTool} {
			result, err := c.CallTool(wait.Context(t), &mcpsdk.CallToolParams{Name: name, Arguments: map[string]string{"text": "hello"}})
			if err != nil || name == "say" && (result.IsError || text(result) != "hello") {
				t.Fatalf("%s before the list: %+v, %v", name, result, err)
			}
		}
		close(listing)
		listed, err := c.ListTools(wait.Context(t), nil)
		if err != nil || len(listed.Tools) != 7 {
			t.Errorf("the list: %+v, %v", listed, err)
		}
	})
}

// Who connects while the tools are listed for the first time is not told that
// they have changed.
func TestTheFirstListIsNoChange(t *testing.T) {
	s := newServer(t, setup{})
	told := 0
	tell := func() {
		t.Helper()
		send := s.whenChanged(func(context.Context, string, mcpsdk.Request) (mcpsdk.Result, error) { told++; return nil, nil })
		if _, err := send(t.Context(), "notifications/tools/list_changed", nil); err != nil {
			t.Fatal(err)
		}
	}
	<-s.loaded
	tell()
	s.Reload(t.Context())
	tell()
	if told != 0 {
		t.Errorf("clients were told %d times of what has not changed", told)
	}
	offered, _ := changeable.Load(s)
	offered.(*offeredTools).hide("wipe")
	s.Reload(t.Context())
	tell()
	s.Reload(t.Context())
	tell()
	if told != 2 {
		t.Errorf("clients were told %d times of a change, want 2", told)
	}
}

// The end waits for no tool that does not say what it is.
func TestCloseEndsListing(t *testing.T) {
	t.Parallel()
	turns := turn.New(turn.Config{NoStatus: true})
	t.Cleanup(turns.Close)
	s, err := New(Config{Turns: turns, Asker: NewAsker(), Tools: func(ctx context.Context) ([]catalog.Tool, []error) {
		<-ctx.Done()
		return nil, []error{ctx.Err()}
	}})
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	go func() {
		s.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(maxListing / 2):
		t.Error("it waits")
	}
}
