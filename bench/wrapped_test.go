package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/testenv/binaries"
)

// echoServer makes the test binary an MCP server of the SDK's.
const echoServer = "bench-mcp-server"

func serveEcho() {
	s := mcpsdk.NewServer(&mcpsdk.Implementation{Name: "echo", Version: "1"}, nil)
	mcpsdk.AddTool(s, &mcpsdk.Tool{Name: "echo", Annotations: &mcpsdk.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *mcpsdk.CallToolRequest, in message) (*mcpsdk.CallToolResult, message, error) {
			return nil, in, nil
		})
	_ = s.Run(context.Background(), &mcpsdk.StdioTransport{})
}

// BenchmarkWrappedCall: a call of an MCP server's tool through toolhost mcp, which
// keeps the server's process, against one of the same server without it; the same
// client over stdio for both. What the first costs more is the median of differences
// between neighbours.
func BenchmarkWrappedCall(b *testing.B) {
	dir := b.TempDir()
	if err := binaries.Into(dir, "toolhost"); err != nil {
		b.Fatal(err)
	}
	file := filepath.Join(dir, "toolhost.yaml")
	text := fmt.Sprintf("tools:\n  wrapped: {mcp: [%s, %s], read: [%s], prefix: \"\", keep: true, readOnly: true}\n", self, echoServer, self)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	ways := []*mcpsdk.ClientSession{
		connected(b, exec.Command(filepath.Join(dir, "toolhost"), "mcp", "--config", file, "--state", filepath.Join(dir, "state"))),
		connected(b, exec.Command(self, echoServer)),
	}
	took := make([][]time.Duration, len(ways))
	n := 0
	once := func(way int) time.Duration {
		n++
		began := time.Now()
		r, err := ways[way].CallTool(b.Context(), &mcpsdk.CallToolParams{Name: "echo", Arguments: message{Text: fmt.Sprint(n)}})
		if err == nil && r.IsError {
			err = errors.New("the call has failed")
		}
		if err != nil {
			b.Fatal(err)
		}
		return time.Since(began)
	}
	once(0) // starts the process that is kept
	for b.Loop() {
		first := n / len(ways) % len(ways)
		for i := range ways {
			way := (first + i) % len(ways)
			took[way] = append(took[way], once(way))
		}
	}
	b.ReportMetric(micros(median(differences(took[0], took[1]))), "over-bare-µs")
	b.ReportMetric(micros(median(took[0])), "wrapped-µs")
	b.ReportMetric(micros(median(took[1])), "bare-µs")
	b.ReportMetric(0, "ns/op")
}

func connected(b *testing.B, command *exec.Cmd) *mcpsdk.ClientSession {
	b.Helper()
	command.Stderr = os.Stderr
	session, err := mcpsdk.NewClient(&mcpsdk.Implementation{Name: "bench", Version: "1"}, nil).Connect(b.Context(), &mcpsdk.CommandTransport{Command: command}, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = session.Close() })
	return session
}
