package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/journal"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
	"github.com/toolhost/toolhost/turn/format"
)

// turnFlags are those of a batch.
type turnFlags struct {
	callFlags
	plugins              []string
	format, state        string
	maxCalls             int
	toolTime, wholeLimit time.Duration
}

func newTurn() *cobra.Command {
	var flags turnFlags
	cmd := &cobra.Command{
		Use: "turn [flags] --plugin PATH ... BATCH", Short: "Run a batch of calls as one turn",
		Long: `Run a batch of calls as one turn. BATCH is a file, or - for stdin: a JSON list of
{"id","tool","arguments"}, or with --format a whole response of that model API.
Every call gets exactly one result; they are printed in call order, as a JSON
list or in the same API's shape.

` + exitDescription,
		Example: "  toolhost turn --plugin ./bin/search --read . batch.json\n  toolhost turn --format anthropic --plugin ./bin/search - < response.json",
		Args:    cobra.ExactArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return runTurn(&flags, args[0]) },
	}
	cmd.Flags().StringArrayVar(&flags.plugins, "plugin", nil, "offer the tools of this plugin; may be repeated")
	cmd.Flags().StringVar(&flags.format, "format", "", "the batch is a response, and the results go back, in this `FORMAT`: "+strings.Join(format.Names(), ", "))
	cmd.Flags().StringVar(&flags.state, "state", "", "journal the turn in the folder `DIR`")
	cmd.Flags().IntVar(&flags.maxCalls, "max-calls", 0, "calls that the turn may make (default 50)")
	cmd.Flags().DurationVar(&flags.toolTime, "tool-time", 0, "time in which calls may run, together (default none)")
	cmd.Flags().DurationVar(&flags.wholeLimit, "deadline", 0, "limit of the whole turn, less human waiting (default none)")
	flags.register(cmd)
	return cmd
}

func runTurn(flags *turnFlags, path string) (err error) {
	template, err := flags.request()
	if err != nil {
		return err
	}
	calls, provider, err := flags.readBatch(path)
	if err != nil {
		return err
	}
	host, err := newHost(&flags.callFlags)
	if err != nil {
		return err
	}
	defer host.Close()
	tools, err := flags.offered(host, template)
	if err != nil {
		return err
	}
	config := turn.Config{
		Start: turn.Supervised(host), Interactor: flags.interactor(), Health: func() any { return host.Host() },
		Tool: func(name string) (turn.Tool, bool) { t, ok := tools[name]; return t, ok },
	}
	if flags.state != "" {
		kept, openErr := openJournal(flags.state)
		if openErr != nil {
			return hostError(openErr)
		}
		defer func() { err = errors.Join(err, kept.Close()) }()
		config.Journal = journal.Turns{Journal: kept}
	}
	return flags.play(turn.New(config), calls, provider, config.Interactor == nil)
}

// openJournal also closes what a dead owner left open.
func openJournal(dir string) (*journal.Journal, error) {
	kept, err := journal.Open(dir, journal.Options{})
	if err != nil {
		return nil, err
	}
	if err := kept.Recover(time.Now()); err != nil {
		return nil, errors.Join(err, kept.Close())
	}
	return kept, nil
}

func (f *turnFlags) play(m *turn.Manager, calls []format.Call, provider format.Provider, headless bool) error {
	t, err := m.Begin(turn.Spec{Headless: headless, Budget: budget.TurnSpec{MaxCalls: f.maxCalls, ToolTime: f.toolTime, Deadline: f.wholeLimit}})
	if err != nil {
		return hostError(err)
	}
	defer t.End()
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(signals)
	go func() {
		for range signals {
			t.Abort(supervisor.AbortUser)
		}
	}()
	shown := f.show(t)
	list := make([]turn.Call, len(calls))
	for i, c := range calls {
		list[i] = turn.Call{ID: c.ID, Tool: c.Tool, Arguments: c.Arguments, Meta: c.Meta, Problem: c.Problem}
	}
	results, err := t.Run(context.Background(), list)
	if err != nil {
		return usageError("%w", err)
	}
	t.End()
	<-shown
	if err := printResults(os.Stdout, calls, results, provider); err != nil {
		return hostError(err)
	}
	if err := t.JournalError(); err != nil {
		return hostError(fmt.Errorf("the turn is not wholly on record: %w", err))
	}
	return turnExit(results)
}

// show prints what happens on stderr: events, or a line for each call that is
// over.
func (f *turnFlags) show(t *turn.Turn) <-chan struct{} {
	done := make(chan struct{})
	s, ok := t.Subscribe(0)
	go func() {
		defer close(done)
		for ok {
			for r := range s.C {
				f.showRecord(r)
			}
			if !s.Gap() {
				return
			}
			s, ok = t.Subscribe(s.Last())
		}
	}()
	return done
}

func (f *turnFlags) showRecord(r turn.Record) {
	switch {
	case f.events:
		fmt.Fprintf(os.Stderr, "%s\n", r.JSON)
	case f.quiet || f.json || r.Result == nil:
	default:
		fmt.Fprintf(os.Stderr, "%s  ", oneLine(r.Event.CallID))
		printOutcome(os.Stderr, r.Result)
	}
}

func turnExit(results []*supervisor.Result) error {
	code := exitOK
	for _, r := range results {
		switch {
		case r.OK():
		case r.Status == supervisor.StatusDenied && r.Reason == turn.OutcomeHeadless:
			return &exitError{code: exitHeadless}
		case r.Status == supervisor.StatusCancelled:
			code = exitAborted
		default:
			code = max(code, exitFailed)
		}
	}
	if code != exitOK {
		return &exitError{code: code}
	}
	return nil
}

func printResults(w io.Writer, calls []format.Call, results []*supervisor.Result, provider format.Provider) error {
	if provider == nil {
		out := json.NewEncoder(w)
		out.SetEscapeHTML(false)
		return out.Encode(results)
	}
	raw, err := provider.Results(calls, results)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", raw)
	return err
}

// offered are the tools of all plugins, by the names that models use.
func (f *turnFlags) offered(host *supervisor.Supervisor, template supervisor.Request) (map[string]turn.Tool, error) {
	tools := map[string]turn.Tool{}
	for _, path := range f.plugins {
		request := template
		request.Tool = supervisor.Tool{Path: path}
		description, failed := host.Describe(context.Background(), request)
		if failed != nil {
			return nil, resultError(failed)
		}
		for _, d := range description.Tools {
			if _, twice := tools[d.GetName()]; twice || d.GetName() == turn.StatusTool {
				return nil, usageError("the tool name %q of %s is taken: offer only one tool of that name", d.GetName(), path)
			}
			tools[d.GetName()] = f.offer(request, d)
		}
	}
	return tools, nil
}

func (f *turnFlags) offer(request supervisor.Request, d *pluginv1.ToolDescription) turn.Tool {
	request.Tool.Name = d.GetName()
	return turn.Tool{
		Name: d.GetName(), Request: request, Mode: turn.Mode(f.mode), Destructive: d.GetAnnotations().GetDestructive(),
		Exclusive: len(f.write) > 0 || d.GetConcurrency() == pluginv1.Concurrency_CONCURRENCY_EXCLUSIVE,
	}
}

const maxBatchBytes = 8 << 20

// readBatch reads calls from a file or stdin.
func (f *turnFlags) readBatch(path string) (calls []format.Call, provider format.Provider, err error) {
	raw, err := readBounded(path, maxBatchBytes)
	if err != nil {
		return nil, nil, usageError("cannot read the batch: %w", err)
	}
	if f.format == "" {
		calls, err = ownBatch(raw)
	} else if provider, err = format.Lookup(f.format); err == nil {
		calls, err = provider.Calls(raw)
	}
	if err != nil {
		return nil, nil, usageError("the batch %s is none: %w", path, err)
	}
	return calls, provider, nil
}

// ownBatch reads a list of calls; one without an id gets its place as one.
func ownBatch(raw []byte) ([]format.Call, error) {
	var calls []format.Call
	if err := json.Unmarshal(raw, &calls); err != nil {
		return nil, fmt.Errorf("want a JSON list of {\"id\",\"tool\",\"arguments\"}: %w", err)
	}
	for i := range calls {
		calls[i].ID = cmp.Or(calls[i].ID, strconv.Itoa(i+1))
	}
	return calls, nil
}

func readBounded(path string, limit int64) ([]byte, error) {
	in := os.Stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	raw, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err == nil && int64(len(raw)) > limit {
		err = fmt.Errorf("it has more than %d bytes", limit)
	}
	return raw, err
}
