package plugin

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/toolhost/toolhost/internal/plugin/handshake"
)

// maxRequestBytes bounds what a host may send: arguments are 1 MiB by default.
const maxRequestBytes = 64 << 20

// Serve serves the tools to the host that started this process. It returns
// when the host shuts it down; main should then return. If the process was
// started by hand, Serve prints how to run the tools and exits with status 2.
// It panics if there are no tools, or two have the same name.
func Serve(tools ...Registered) {
	mustBeDistinct(tools)
	serve(fixed(tools))
}

// ServeProvider is like Serve, for tools that are known only at run time.
func ServeProvider(p Provider) { serve(p) }

func serve(p Provider) {
	if os.Getenv(handshake.CookieKey) != handshake.CookieValue {
		usage(os.Stderr, p)
		os.Exit(2)
	}
	s := newServer(p)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	go s.terminateOn(signals)
	if err := greetAndServe(s, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "plugin:", err)
		os.Exit(1)
	}
}

// greetAndServe is go-plugin's server without go-plugin's package and grpc-go, which
// take a tool most of its time to start: its handshake's line, and what its hosts
// call beside the tool's own service.
func greetAndServe(s *server, stdout io.Writer) error {
	if os.Getenv(handshake.ClientCert) != "" {
		return fmt.Errorf("the host wants TLS ($%s), which a tool has no use for on a unix socket: have it turn AutoMTLS off", handshake.ClientCert)
	}
	listener, err := listen(os.Getenv(handshake.SocketDir))
	if err != nil {
		return fmt.Errorf("cannot listen: %w", err)
	}
	g := newRPC(s)
	served := make(chan error, 1)
	go func() { served <- g.Serve(listener) }() // who reads the line is answered at once
	if _, err := fmt.Fprintf(stdout, "%d|%d|unix|%s|grpc|\n", handshake.CoreVersion, handshake.Version, listener.Addr()); err != nil {
		return fmt.Errorf("cannot greet the host: %w", err)
	}
	return <-served
}

// listen makes a socket in dir, which is the folder for temporary files if it is
// empty. The listener removes it.
func listen(dir string) (net.Listener, error) {
	return net.Listen("unix", filepath.Join(cmp.Or(dir, os.TempDir()), "plugin"+rand.Text()[:10]))
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
	for sig := range signals {
		if sig == syscall.SIGTERM { // a terminal's interrupt is for the host
			s.terminate()
		}
	}
}

func printable(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
