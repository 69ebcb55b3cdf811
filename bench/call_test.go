package bench

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/plugin/proto/v1/toolgrpc"
	"github.com/toolhost/toolhost/supervisor"
)

var arguments = json.RawMessage(`{"text":"0123456789012345678901234567890123456789012345678901234567890123"}`)

// BenchmarkFreshCall: start, one call and clean end of a process, supervised
// against go-plugin by itself.
func BenchmarkFreshCall(b *testing.B) { freshCall(b, supervisor.Limits{}) }

// BenchmarkFreshCallWithoutControllers: the same in a cgroup that limits
// nothing, for a cgroup v2 hierarchy whose controllers are all on v1's.
func BenchmarkFreshCallWithoutControllers(b *testing.B) {
	off := supervisor.Unlimited
	freshCall(b, supervisor.Limits{MemoryBytes: off, Pids: off, CPUPercent: off})
}

func freshCall(b *testing.B, limits supervisor.Limits) {
	host := newHost(b)
	n, ratio := contest(b, func(b *testing.B) {
		r := host.Call(context.Background(), supervisor.Request{
			Tool: supervisor.Tool{Path: self}, Arguments: arguments, Sandbox: &supervisor.Policy{Tier: "none"},
			Limits: limits,
		})
		if !r.OK() {
			b.Fatal(r.Message)
		}
	}, plainCall, func() { settle(host) })
	atMost(b, n, "ratio", ratio, freshRatio)
}

// plain is go-plugin's client of the same tool, without anything of ours.
type plain struct {
	goplugin.NetRPCUnsupportedPlugin
}

func (plain) GRPCServer(*goplugin.GRPCBroker, *grpc.Server) error { return errors.New("client only") }

func (plain) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return toolgrpc.NewToolClient(conn), nil
}

func plainClient() *goplugin.Client { return goplugin.NewClient(plainConfig()) }

func plainConfig() *goplugin.ClientConfig {
	return &goplugin.ClientConfig{
		HandshakeConfig:  goplugin.HandshakeConfig{ProtocolVersion: 1, MagicCookieKey: "TOOLHOST_PLUGIN", MagicCookieValue: "toolhost.plugin.v1"},
		Plugins:          goplugin.PluginSet{"tool": plain{}},
		Cmd:              exec.Command(self),
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		Logger:           hclog.NewNullLogger(),
		StartTimeout:     10 * time.Second,
	}
}

func plainCall(b *testing.B) {
	client := plainClient()
	defer client.Kill()
	callOver(b, plainTool(b, client))
}

func plainTool(b *testing.B, client *goplugin.Client) toolgrpc.ToolClient {
	protocol, err := client.Client()
	if err != nil {
		b.Fatal(err)
	}
	raw, err := protocol.Dispense("tool")
	if err != nil {
		b.Fatal(err)
	}
	return raw.(toolgrpc.ToolClient)
}

func callOver(b *testing.B, tool toolgrpc.ToolClient) {
	stream, err := tool.Call(context.Background(), &pluginv1.CallRequest{CallId: "x", Tool: "echo", Arguments: arguments})
	if err != nil {
		b.Fatal(err)
	}
	for {
		if _, err := stream.Recv(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			b.Fatal(err)
		}
	}
}
