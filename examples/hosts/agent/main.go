// Command agent is a small but complete agent: it sends a prompt to a model,
// runs the tool calls that the model asks for, sends their results back, and
// goes on until the model has nothing more to call.
//
//	agent --model MODEL --plugin ./bin/search --read . 'Where are the TODOs?'
//
// It speaks to any endpoint that is compatible with Anthropic's Messages API
// (--api anthropic), OpenAI's Responses API (openai) or Chat Completions API
// (openai-chat). The key comes from ANTHROPIC_API_KEY or OPENAI_API_KEY; tools
// do not inherit it.
//
// Its exit code is 0 after the model's last word, 1 if something failed, 2 if
// the command line is wrong, and 130 after Ctrl-C.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
	"github.com/toolhost/toolhost/turn/format"
)

const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// errInterrupted is the cause of a context that Ctrl-C has ended.
var errInterrupted = errors.New("interrupted")

func main() {
	supervisor.RelayMain() // for tools with network grants
	o, err := parse(os.Args[1:], os.Stdin, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(exitOK)
	case err != nil:
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(exitUsage)
	}
	switch err := run(o); {
	case errors.Is(err, errInterrupted):
		fmt.Fprintln(os.Stderr, "agent: interrupted")
		os.Exit(exitInterrupted)
	case err != nil:
		fmt.Fprintln(os.Stderr, "agent:", printable(err.Error()))
		os.Exit(exitFailed)
	}
}

// options are the command line.
type options struct {
	api, baseURL, model  string
	plugins, read, write []string
	yes, ask             bool
	maxRounds            int
	streamDuration       time.Duration
	prompt               string
	// headless: stdin was the prompt, so nobody can be asked on it.
	headless bool
}

func parse(args []string, stdin io.Reader, stderr io.Writer) (o options, err error) {
	f := flag.NewFlagSet("agent", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.api, "api", "anthropic", "what the endpoint speaks: anthropic, openai (Responses) or openai-chat")
	f.StringVar(&o.baseURL, "base-url", "", "`URL` before /v1/messages, /responses or /chat/completions (default the API's own)")
	f.StringVar(&o.model, "model", "", "name of the model")
	f.Func("plugin", "offer the tools of the plugin at `PATH`; may be repeated", appendTo(&o.plugins))
	f.Func("read", "show the file or folder `PATH` to tools; may be repeated", appendTo(&o.read))
	f.Func("write", "show `PATH` to tools and let them change it; may be repeated", appendTo(&o.write))
	f.BoolVar(&o.yes, "yes", false, "allow every call, also of tools that destroy things")
	f.BoolVar(&o.ask, "ask", false, "ask before every call (default before those of destructive tools)")
	f.IntVar(&o.maxRounds, "max-rounds", 20, "how often the model is asked, at most")
	f.DurationVar(&o.streamDuration, "stream-duration", 60*time.Second, "how long the model may take, all its responses together; tools and people have their own time")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	switch {
	case dialects[o.api] == nil:
		return o, fmt.Errorf("--api %q is unknown: give anthropic, openai or openai-chat", o.api)
	case o.model == "":
		return o, errors.New("--model is missing: name the model")
	case o.yes && o.ask:
		return o, errors.New("--yes and --ask contradict one another: leave one of them out")
	case o.streamDuration <= 0:
		return o, fmt.Errorf("--stream-duration %s is too short: give one such as 60s", o.streamDuration)
	case o.maxRounds < 1:
		return o, fmt.Errorf("--max-rounds %d is too few: give 1 or more", o.maxRounds)
	}
	return o, o.takePrompt(f.Args(), stdin)
}

func appendTo(list *[]string) func(string) error {
	return func(s string) error { *list = append(*list, s); return nil }
}

const maxPromptBytes = 1 << 20

// takePrompt reads stdin where the command line has no prompt.
func (o *options) takePrompt(args []string, stdin io.Reader) error {
	o.prompt = strings.Join(args, " ")
	if len(args) == 0 {
		o.headless = true
		raw, err := io.ReadAll(io.LimitReader(stdin, maxPromptBytes+1))
		if err != nil {
			return fmt.Errorf("cannot read the prompt: %w", err)
		}
		o.prompt = string(raw)
	}
	switch {
	case len(o.prompt) > maxPromptBytes:
		return fmt.Errorf("the prompt has more than %d bytes", maxPromptBytes)
	case strings.TrimSpace(o.prompt) == "":
		return errors.New("there is no prompt: give one as an argument, or on stdin")
	}
	return nil
}

func run(o options) error {
	host, err := o.host()
	if err != nil {
		return err
	}
	defer host.Close()
	tools, err := o.offered(host)
	if err != nil {
		return err
	}
	provider, err := format.Lookup(o.api)
	if err != nil {
		return err
	}
	client, err := o.client(provider, tools)
	if err != nil {
		return err
	}
	t, err := o.begin(host, tools)
	if err != nil {
		return err
	}
	client.stream = t.Stream
	shown := show(t, os.Stderr)
	defer func() { t.End(); <-shown }()
	ctx, release := interruptible(t)
	defer release()
	a := &agent{client: client, provider: provider, run: again(t), maxRounds: o.maxRounds}
	err = a.talk(ctx, o.prompt)
	if errors.Is(err, turn.ErrStreamOver) { // whose remedy is a daemon's
		return errors.New("the turn's time for the model to stream is used up: give it more with --stream-duration")
	}
	return err
}

// begin begins the one turn that all rounds are part of: what a human has
// approved for the turn, and its limit of calls, last as long as the agent.
func (o *options) begin(host *supervisor.Supervisor, tools []offer) (*turn.Turn, error) {
	config := turn.Config{Start: turn.Supervised(host), Program: host.Program, Tool: lookup(tools)}
	if !o.headless {
		config.Interactor = newAsker(os.Stdin, os.Stderr)
	}
	spec := turn.Spec{Headless: o.headless}
	spec.Budget.StreamDuration = o.streamDuration
	return turn.New(config).Begin(spec)
}

// again runs batches in a turn, and those of their calls again whose results say
// that they may be: the host was busy, say, and the tool never started. All rounds
// share one budget of retries.
func again(t *turn.Turn) func(context.Context, []turn.Call) ([]*api.Result, error) {
	retry := budget.Retry{Attempts: 3, Budget: &budget.RetryBudget{}}
	return func(ctx context.Context, calls []turn.Call) ([]*api.Result, error) {
		return api.RunAgain(ctx, calls, retry.Again, func(ctx context.Context, attempt int, calls []turn.Call) ([]*api.Result, error) {
			for i := range calls {
				calls[i].Retry = attempt > 1
			}
			return t.Run(ctx, calls)
		})
	}
}

// interruptible gives a context that the first Ctrl-C ends: the model is heard
// no further, and Turn.Run aborts the turn. The second one kills what still
// runs, and a third one ends the agent itself.
func interruptible(t *turn.Turn) (ctx context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		for first := true; ; first = false {
			select {
			case <-done:
				return
			case <-signals:
			}
			cancel(errInterrupted)
			if first {
				fmt.Fprintln(os.Stderr, "\nagent: ending the calls; press Ctrl-C again to kill them at once")
				continue
			}
			signal.Stop(signals)
			t.Abort(api.ReasonUser)
		}
	}()
	return ctx, func() { signal.Stop(signals); close(done) }
}
