package plugin

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/toolhost/toolhost/internal/plugin/handshake"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/plugin/proto/v1/toolgrpc"
)

// The test binary plays a tool for go-plugin's own host.
func TestMain(m *testing.M) {
	if os.Getenv(handshake.CookieKey) != "" {
		Serve(tool("hello", func(_ context.Context, out *Output) error { return out.Text("hi") }), tool("wait", func(ctx context.Context, _ *Output) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}))
		return
	}
	goleak.VerifyTestMain(m)
}

type asClient struct {
	goplugin.NetRPCUnsupportedPlugin
}

func (asClient) GRPCServer(*goplugin.GRPCBroker, *grpc.Server) error { return nil }

func (asClient) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return toolgrpc.NewToolClient(conn), nil
}

// startPlain starts this tool as a host does that knows go-plugin only.
func startPlain(t *testing.T, change func(*goplugin.ClientConfig)) *goplugin.Client {
	t.Helper()
	config := &goplugin.ClientConfig{
		HandshakeConfig: goplugin.HandshakeConfig{
			ProtocolVersion: handshake.Version, MagicCookieKey: handshake.CookieKey, MagicCookieValue: handshake.CookieValue,
		},
		Plugins: goplugin.PluginSet{handshake.PluginName: asClient{}}, AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		Cmd: exec.Command("/proc/self/exe"), Logger: hclog.NewNullLogger(), UnixSocketConfig: &goplugin.UnixSocketConfig{TempDir: t.TempDir()},
	}
	if change != nil {
		change(config)
	}
	client := goplugin.NewClient(config)
	t.Cleanup(client.Kill)
	return client
}

// A tool is a plugin to go-plugin's own client, which starts it, asks whether it
// is well, calls it, and has it end by itself.
func TestGoPluginsOwnHost(t *testing.T) {
	client := startPlain(t, nil)
	protocol, err := client.Client()
	if err != nil {
		t.Fatal(err)
	}
	if err := protocol.Ping(); err != nil {
		t.Errorf("ping: %v", err)
	}
	raw, err := protocol.Dispense(handshake.PluginName)
	if err != nil {
		t.Fatal(err)
	}
	tools := raw.(toolgrpc.ToolClient)
	described, err := tools.Describe(t.Context(), &pluginv1.DescribeRequest{})
	if err != nil || len(described.GetTools()) != 2 {
		t.Errorf("%v, %v", described, err)
	}
	stream, err := tools.Call(t.Context(), &pluginv1.CallRequest{CallId: "1", Tool: "hello"})
	if err != nil {
		t.Fatal(err)
	}
	if text := receive(t, stream).GetContent().GetText(); text != "hi" {
		t.Errorf("text %q", text)
	}
	if _, err := tools.Call(t.Context(), &pluginv1.CallRequest{CallId: "2", Tool: "wait"}); err != nil { // and still runs when the host is done
		t.Fatal(err)
	}
	began := time.Now()
	client.Kill()
	const forced = 2 * time.Second // is how long go-plugin waits before it kills
	if took := time.Since(began); !client.Exited() || took >= forced {
		t.Errorf("ended: %v, after %v", client.Exited(), took)
	}
}

// A host that wants TLS is told why it cannot have it.
func TestAHostThatWantsTLS(t *testing.T) {
	said, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	client := startPlain(t, func(c *goplugin.ClientConfig) { c.AutoMTLS, c.Stderr = true, said })
	if _, err := client.Client(); err == nil {
		t.Error("it has started")
	}
	client.Kill()
	text, err := os.ReadFile(said.Name())
	if err != nil {
		t.Fatal(err)
	}
	if want := "plugin: the host wants TLS ($PLUGIN_CLIENT_CERT), which a tool has no use for on a unix socket: have it turn AutoMTLS off"; string(text) != want+"\n" {
		t.Errorf("said %q, want %q", text, want)
	}
}
