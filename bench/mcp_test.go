package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"testing"
	"time"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/internal/serve/mcpserver"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// starter begins a turn's call.
type starter = func(context.Context, supervisor.Request) turn.Running

// newMCP offers echo, with a journal as toolhost mcp has one, and gives a turn of
// the library beside it.
func newMCP(b *testing.B, host *supervisor.Supervisor, start starter) (*mcpserver.Server, *turn.Turn) {
	b.Helper()
	request := supervisor.Request{Tool: supervisor.Tool{Path: self}}
	described, failed := host.Describe(b.Context(), request)
	if failed != nil {
		b.Fatal(failed.Message)
	}
	request.Tool.Name = "echo"
	echo := catalog.Tool{Tool: turn.Tool{Name: "echo", Request: request}, Description: described.Tools[0]}
	kept, err := journal.Open(b.TempDir(), journal.Options{Ahead: true})
	if err != nil {
		b.Fatal(err)
	}
	asker := mcpserver.NewAsker()
	turns := turn.New(turn.Config{
		Start: start, NoStatus: true, Interactor: asker, Journal: journal.Turns{Journal: kept},
		Tool: func(string) (turn.Tool, bool) { return echo.Tool, true },
	})
	server, err := mcpserver.New(mcpserver.Config{
		Turns: turns, Asker: asker, Tools: func(context.Context) ([]catalog.Tool, []error) { return []catalog.Tool{echo}, nil },
	})
	if err != nil {
		b.Fatal(err)
	}
	beside, err := turns.Begin(turn.Spec{Budget: budget.TurnSpec{MaxCalls: 1_000_000}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		beside.End()
		server.Close()
		turns.Close()
		kept.Close()
	})
	return server, beside
}

// overPipes serves a client as over stdin and stdout.
func overPipes(b *testing.B, server *mcpserver.Server) mcpsdk.Transport {
	b.Helper()
	in, to, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	from, out, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(context.Background(), in, out) }()
	b.Cleanup(func() {
		_ = to.Close()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	return &mcpsdk.IOTransport{Reader: from, Writer: to}
}

func overHTTP(b *testing.B, server *mcpserver.Server) mcpsdk.Transport {
	b.Helper()
	web := httptest.NewServer(server.Handler())
	wires := &http.Transport{}
	b.Cleanup(func() {
		wires.CloseIdleConnections()
		web.Close()
	})
	return &mcpsdk.StreamableClientTransport{Endpoint: web.URL, HTTPClient: &http.Client{Transport: wires}, MaxRetries: -1}
}

// BenchmarkMCPCall: the same sandboxed call by a client of the MCP server and
// through a turn of the library with a journal. What the first costs more, the
// client's own share included, is the median of differences between neighbours.
func BenchmarkMCPCall(b *testing.B) { benchMCP(b, turn.Supervised) }

// BenchmarkMCPLayer is that with a call that takes no time, whose noise does not
// hide the difference.
func BenchmarkMCPLayer(b *testing.B) {
	benchMCP(b, func(*supervisor.Supervisor) starter {
		return func(_ context.Context, r supervisor.Request) turn.Running {
			r.Events <- api.Event{Kind: api.EventStarted}
			return said{}
		}
	})
}

// said is an instant call of echo.
type said struct{ instant }

func (said) Result() *api.Result {
	r := instant{}.Result()
	r.Content, r.Structured = []api.Content{{Type: "text", Text: "begun"}}, []byte(`{"text":"said"}`)
	return r
}

func benchMCP(b *testing.B, start func(*supervisor.Supervisor) starter) {
	for _, kind := range []struct {
		name, version string
		transport     func(*testing.B, *mcpserver.Server) mcpsdk.Transport
	}{
		{"stdio 2025", "2025-11-25", overPipes},
		{"stdio 2026", "2026-07-28", overPipes},
		{"http 2025", "2025-11-25", overHTTP},
		{"http 2026", "2026-07-28", overHTTP},
	} {
		b.Run(kind.name, func(b *testing.B) {
			host := newHost(b)
			server, t := newMCP(b, host, start(host))
			client := mcpsdk.NewClient(&mcpsdk.Implementation{Name: "bench", Version: "1"}, nil)
			session, err := client.Connect(b.Context(), kind.transport(b, server), &mcpsdk.ClientSessionOptions{ProtocolVersion: kind.version})
			if err != nil {
				b.Fatal(err)
			}
			defer session.Close()
			compareMCP(b, host, session, t)
		})
	}
}

func compareMCP(b *testing.B, host *supervisor.Supervisor, session *mcpsdk.ClientSession, t *turn.Turn) {
	n := 0
	ways := []func(text string) error{
		func(text string) error {
			r, err := session.CallTool(b.Context(), &mcpsdk.CallToolParams{Name: "echo", Arguments: message{Text: text}})
			if err == nil && r.IsError {
				err = errors.New("the call has failed")
			}
			return err
		},
		func(text string) error {
			return failed(t.Run(b.Context(), []turn.Call{{ID: strconv.Itoa(n), Tool: "echo", Arguments: fmt.Appendf(nil, `{"text":%q}`, text)}}))
		},
	}
	took := make([][]time.Duration, len(ways))
	for b.Loop() {
		n++
		for i := range ways {
			way := (n + i) % len(ways)
			began := time.Now()
			if err := ways[way](fmt.Sprint(n, i)); err != nil { // no call is a repeat
				b.Fatal(err)
			}
			took[way] = append(took[way], time.Since(began))
			settle(host)
		}
	}
	b.ReportMetric(micros(median(differences(took[0], took[1]))), "over-turn-µs")
	b.ReportMetric(micros(median(took[0])), "mcp-µs")
	b.ReportMetric(micros(median(took[1])), "turn-µs")
	b.ReportMetric(0, "ns/op")
}
