package plugin

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/toolhost/toolhost/plugin/internal/handshake"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// maxRequestBytes bounds what a host may send: arguments are 1 MiB by default.
const maxRequestBytes = 64 << 20

// Serve runs the tools for the host that started this process and returns
// when the host shuts it down; main should then end. Started by hand, it says
// how to run the tools and exits with status 2. It panics without tools or
// with two of one name.
func Serve(tools ...Registered) {
	mustBeDistinct(tools)
	serve(fixed(tools))
}

// ServeProvider is Serve for tools that are known only at run time.
func ServeProvider(p Provider) { serve(p) }

func serve(p Provider) {
	cookie := handshake.Config()
	if os.Getenv(cookie.MagicCookieKey) != cookie.MagicCookieValue {
		usage(os.Stderr, p)
		os.Exit(2)
	}
	s := newServer(p, realStdio())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	go s.terminateOn(signals)
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: cookie,
		Plugins:         goplugin.PluginSet{handshake.PluginName: &service{server: s}},
		Logger:          hclog.NewNullLogger(),
		GRPCServer: func(options []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(options, grpc.MaxRecvMsgSize(maxRequestBytes))...)
		},
	})
}

func mustBeDistinct(tools []Registered) {
	if len(tools) == 0 {
		panic("plugin: Serve needs at least one tool")
	}
	seen := map[string]bool{}
	for _, tool := range tools {
		if seen[tool.Name()] {
			panic(fmt.Sprintf("plugin: two tools are named %q", tool.Name()))
		}
		seen[tool.Name()] = true
	}
}

func usage(w io.Writer, p Provider) {
	tools, known := p.(fixed)
	if !known {
		fmt.Fprintln(w, "This is a toolhost tool. It is started by a toolhost, not by hand.")
		return
	}
	var names []string
	for _, tool := range tools {
		names = append(names, tool.Name())
	}
	fmt.Fprintf(w, "This is a toolhost tool (%s). Run it with:\n\n\ttoolhost run %s key=value ...\n\ttoolhost tools %s\n",
		strings.Join(names, ", "), os.Args[0], os.Args[0])
}

// version is the module version that the Go toolchain stamped, if any.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return ""
}

// terminateOn takes a signal as a cancel of every call, so that a tool can use
// its grace period.
func (s *server) terminateOn(signals <-chan os.Signal) {
	for range signals {
		s.terminate()
	}
}

// service adapts the server to go-plugin.
type service struct {
	goplugin.NetRPCUnsupportedPlugin
	server *server
}

func (p *service) GRPCServer(_ *goplugin.GRPCBroker, s *grpc.Server) error {
	pluginv1.RegisterToolServer(s, p.server)
	return nil
}

func (p *service) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, fmt.Errorf("bug: the author's side of a plugin is not a client")
}

func printable(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
