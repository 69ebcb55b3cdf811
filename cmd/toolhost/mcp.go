package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/cli/cmdline"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/cpus"
	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/internal/serve/daemon"
	"github.com/toolhost/toolhost/internal/serve/mcpserver"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// mcpFlags are those of the MCP server.
type mcpFlags struct {
	callFlags
	plugins []string
}

var mcpKeys = keys{"client-timeout": "mcp.clientTimeout"}

// notOfMCP are flags of calls that mean nothing where results go to a client.
var notOfMCP = []string{"out", "json", "events", "quiet"}

func newMCP() *cobra.Command {
	var flags mcpFlags
	cmd := &cobra.Command{
		Use: "mcp [flags]", Short: "Offer the tools to an MCP client, over stdin and stdout",
		Long: `Offer the tools of the configuration, and those of --plugin, to an MCP client over
stdin and stdout. Each call is supervised: it ends reliably at its timeout, when the
client cancels it, and when stdin is closed or the client dies. The client is answered
before its own timeout, with the output so far.

Messages for people go to stderr. toolhost mcp install adds it to the configuration of
a well-known client.

` + exitDescription,
		Example: "  toolhost mcp --config toolhost.yaml\n  toolhost mcp --plugin ./bin/search --read .",
		Args:    cmdline.Words(0),
		RunE:    func(*cobra.Command, []string) error { return runMCP(&flags) },
	}
	cmd.Flags().StringArrayVar(&flags.plugins, "plugin", nil, "offer the tools of this plugin; may be repeated")
	cmdline.DurationVar(cmd.Flags(), new(time.Duration), "client-timeout", 0, "how long the client waits for a result (default 60s)")
	flags.register(cmd)
	flags.journal.register(cmd, true)
	flags.own = mcpKeys
	for _, name := range notOfMCP {
		_ = cmd.Flags().MarkHidden(name)
	}
	cmd.AddCommand(newMCPInstall())
	return cmd
}

func runMCP(flags *mcpFlags) error {
	if err := flags.contradicts("toolhost mcp", notOfMCP...); err != nil {
		return err
	}
	daemon.Spare()
	in, out, err := takeStdio()
	if err != nil {
		return hostError(err)
	}
	k, err := flags.open()
	if err != nil {
		return err
	}
	defer k.Close()
	own, err := k.ofPlugins(flags.plugins)
	if err != nil {
		return err
	}
	kept, err := flags.journal.open(journal.Options{Ahead: true})
	if err != nil {
		return err
	}
	if kept != nil {
		defer kept.Close()
	}
	flags.warnUnsafe()
	return k.serveMCP(flags, own, kept, in, out)
}

// takeStdio keeps everything but the protocol off stdout.
func takeStdio() (in io.ReadCloser, out io.WriteCloser, err error) {
	fd, err := syscall.Dup(int(os.Stdout.Fd()))
	if err != nil {
		return nil, nil, fmt.Errorf("cannot use stdout: %w", err)
	}
	syscall.CloseOnExec(fd)
	out = os.NewFile(uintptr(fd), "stdout")
	os.Stdout = os.Stderr
	return polled(os.Stdin), out, nil
}

// polled is a pipe as a file of our own, which Go's runtime waits for with all others: a
// thread that reads it keeps a processor's turn to itself, and who is given what it has
// read is woken on another one. Other files, and pipes of other users, stay as they are.
func polled(in *os.File) *os.File {
	info, err := in.Stat()
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return in
	}
	own, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", in.Fd()), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return in
	}
	return own
}

func (k *app) serveMCP(flags *mcpFlags, own map[string]catalog.Tool, kept *journal.Journal, in io.ReadCloser, out io.WriteCloser) error {
	cpus.Spare()
	logger := hclog.New(&hclog.LoggerOptions{Name: "toolhost", Output: os.Stderr, Level: hclog.Warn})
	find := func(ctx context.Context, name string) (catalog.Tool, error) {
		if t, ok := own[name]; ok {
			return t, nil
		}
		return k.catalog.Find(ctx, name)
	}
	asker := mcpserver.NewAsker()
	config := k.turns(kept)
	config.NoStatus, config.Interactor, config.Logger = true, asker, logger
	config.Tool = func(name string) (turn.Tool, bool) {
		if t, ok := own[name]; ok {
			return t.Tool, true
		}
		return k.catalog.Offered(name)
	}
	turns := turn.New(config)
	defer turns.Close()
	settings := mcpserver.Config{
		Turns: turns, Asker: asker, Version: readVersion().Version, Logger: logger, Headless: k.flags.headless, Parallel: k.loaded.Turn.Parallel, Search: k.loaded.MCP.Search,
		Tools: func(ctx context.Context) ([]catalog.Tool, []error) { return k.offeredTo(ctx, own) }, Find: find,
		Budget:  func() budget.TurnSpec { return k.loaded.Turn.Budget },
		Timeout: func(client string) time.Duration { return k.clientTimeout(flags, client) },
		Health:  func() any { return k.host.Health() },
	}
	if k.catalog.HasServers() {
		settings.Servers, settings.Renew = k.catalog.Servers, k.catalog.Renew
	}
	server, err := mcpserver.New(settings)
	k.notices.Store(server)
	if err != nil {
		return hostError(err)
	}
	ctx, release := endOnSignal(server)
	defer release()
	defer k.retry(server)()
	if err := server.Serve(ctx, in, out); err != nil {
		return exit.With(exit.Failed, err)
	}
	return nil
}

// retry offers what could not be described at first as soon as it can be; end
// ends that.
func (k *app) retry(server *mcpserver.Server) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var trying sync.WaitGroup
	trying.Go(func() { k.catalog.Retry(ctx, func() { server.Reload(ctx) }) })
	return func() {
		cancel()
		trying.Wait()
	}
}

// clientTimeout is how long a client waits.
func (k *app) clientTimeout(flags *mcpFlags, client string) time.Duration {
	if flags.set("client-timeout") {
		return k.loaded.MCP.ClientTimeout
	}
	return cmp.Or(k.loaded.MCP.Clients[client], k.loaded.MCP.ClientTimeout)
}

// ofPlugins are the tools of binaries that no configuration names.
func (k *app) ofPlugins(paths []string) (map[string]catalog.Tool, error) {
	tools := map[string]catalog.Tool{}
	if k.loaded.Default.Mode == turn.ModeDeny { // then nothing of them is run
		return tools, nil
	}
	for _, path := range paths {
		request, err := k.request(supervisor.Tool{Path: path})
		if err != nil {
			return nil, err
		}
		described, failed := k.host.Describe(context.Background(), request)
		if failed != nil {
			return nil, resultError(failed)
		}
		for _, d := range described.Tools {
			if _, twice := tools[d.GetName()]; twice {
				return nil, exit.Usagef("the tool name %q of %s is taken: offer only one tool of that name", d.GetName(), path)
			}
			tools[d.GetName()] = k.catalog.Unlisted(request, d, described)
		}
	}
	return tools, nil
}

// offeredTo lists what clients are offered: the plugins' tools, and the
// configuration's that have other names.
func (k *app) offeredTo(ctx context.Context, own map[string]catalog.Tool) (tools []catalog.Tool, problems []error) {
	all, problems := k.catalog.All(ctx)
	for _, warning := range k.catalog.Warnings() {
		problems = append(problems, errors.New(warning))
	}
	for _, t := range own {
		tools = append(tools, t)
	}
	for _, t := range all {
		if _, taken := own[t.Name]; taken {
			problems = append(problems, fmt.Errorf("tool %s (%s) has the name of one of a --plugin, which is offered in its place", t.Name, t.Entry.Source))
			continue
		}
		tools = append(tools, t)
	}
	return tools, problems
}

// endOnSignal ends the server at the first signal, and kills at the second.
func endOnSignal(server *mcpserver.Server) (ctx context.Context, release func()) {
	ctx, cancel := context.WithCancel(context.Background())
	stop := onSignals(func(n int) {
		if n == 1 {
			cancel()
		} else {
			server.Kill()
		}
	})
	return ctx, func() {
		stop()
		cancel()
	}
}
