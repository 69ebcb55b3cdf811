package mcpserver

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/internal/tools/catalog"
)

// A timeout that the model asks for is its own word, and what became of it is
// in the result. Its processes are gone by then.
func TestTimeoutByMeta(t *testing.T) {
	t.Parallel()
	ofEachKind(t, func(t *testing.T, k kind) {
		c := connect(t, newServer(t, setup{}), k, nil)
		mark := newMark()
		r, ms := timedOut(t, c, params("hang", arguments{Mark: mark}))
		if alive(mark) {
			t.Error("its child is still there")
		}
		own := execution(t, r)
		if !r.IsError || own.Status != api.StatusTimeout || own.Timing.Source != "call" || own.Kill.Survivors != 0 || *own.Timing.TimeoutMs != ms {
			t.Errorf("%+v", own)
		}
		if s := text(r); !strings.HasPrefix(s, "[TIMEOUT]") || !strings.Contains(s, "begun") {
			t.Errorf("text %q", s)
		}
	})
}

// timedOut calls a tool that says begun and then hangs, with a timeout that it
// has begun within.
func timedOut(t *testing.T, c *mcpsdk.ClientSession, p *mcpsdk.CallToolParams) (r *mcpsdk.CallToolResult, ms int64) {
	t.Helper()
	if p.Meta == nil {
		p.Meta = mcpsdk.Meta{}
	}
	for ms = 4000; ; ms *= 2 {
		p.Meta["dev.toolhost/timeoutMs"] = ms
		if r = invoke(t, c, p); ms > wait.Bound.Milliseconds() || strings.Contains(text(r), "begun") {
			return r, ms
		}
	}
}

// The client is answered before it gives up, with what there is by then.
func TestClientTimeout(t *testing.T) {
	t.Parallel()
	var r *mcpsdk.CallToolResult
	var began time.Time
	for limit := 4 * time.Second; limit < wait.Bound; limit *= 2 { // the tool's start takes a part of it, and the margins are parts of it
		c := connect(t, newServer(t, setup{Config: Config{Timeout: ends(limit)}}), kinds[0], nil)
		began = time.Now()
		if r = invoke(t, c, params("hang", arguments{Mark: newMark()})); strings.Contains(text(r), "begun") && execution(t, r).Status == api.StatusTimeout {
			break
		}
	}
	own := execution(t, r)
	if own.Status != api.StatusTimeout || own.Timing.Source != "client" || !strings.Contains(text(r), "begun") {
		t.Errorf("%s by %s: %s", own.Status, own.Timing.Source, text(r))
	}
	if took := time.Since(began); took < time.Second {
		t.Errorf("it took %s only", took)
	}
}

// A note about time is for who has asked for some, in a block of its own: what
// the operator has set makes none.
func TestNoteAboutTime(t *testing.T) {
	t.Parallel()
	s := newServer(t, setup{Config: Config{Timeout: ends(20 * time.Second)}, adjust: func(tool *catalog.Tool) {
		tool.Request.Timeouts = append(tool.Request.Timeouts, budget.Ask{Layer: budget.LayerGlobal, Rank: budget.RankTool, Timeout: 2 * time.Minute})
	}})
	c := connect(t, s, kinds[0], nil)
	for meta, noted := range map[string]bool{
		"": false, `{"dev.toolhost/timeoutMs":10000}`: false, `{"other":1}`: false,
		`{"dev.toolhost/timeoutMs":3000000}`: true, `{"toolhost.dev/timeoutMs":3000000}`: true, `{"timeout":1}`: true, `{"timeout":0}`: true, `{"timeout":"soon"}`: true,
	} {
		p := params("say", arguments{Text: "hello" + meta})
		if meta != "" {
			_ = json.Unmarshal([]byte(meta), &p.Meta)
		}
		r := invoke(t, c, p)
		first, _ := r.Content[0].(*mcpsdk.TextContent)
		if r.IsError || first.Text != "hello"+meta || (len(r.Content) == 2) != noted || noted && !strings.HasPrefix(r.Content[1].(*mcpsdk.TextContent).Text, "[NOTE] timeout ") {
			t.Errorf("%s: %q", meta, text(r))
		}
		if own := execution(t, r); meta == "" && (!own.Timing.Clamped || len(own.Timing.SettingsWarnings) != 1) {
			t.Errorf("the receipt has %+v", own.Timing)
		}
	}
}

// ends gives calls of the test's own a timeout.
func ends(after time.Duration) func(string) time.Duration {
	return func(string) time.Duration { return after }
}
