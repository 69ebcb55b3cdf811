package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/toolhost/toolhost/plugin"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

const handshakeFix = "listen on a unix socket in the folder PLUGIN_UNIX_SOCKET_DIR and print 1|1|unix|<that folder>/<name>|grpc as the very first line on stdout"

// slowStart is long for a tool that a model waits for. Tests on a busy machine
// have more patience.
var slowStart = 3 * time.Second

func doHandshake(ctx context.Context, b *bench, r *reply) {
	began := time.Now()
	c, err := b.start(ctx)
	if err != nil {
		r.set(ruleHandshake, failed(handshakeFix, "%v", err))
		return
	}
	defer b.stop(c)
	took := time.Since(began)
	entries, _ := os.ReadDir(c.socketDir)
	switch {
	case len(entries) != 1:
		r.set(ruleHandshake, failed("make one socket in PLUGIN_UNIX_SOCKET_DIR and nothing else: in a sandbox it has no room for more", "it made %d entries in the socket folder", len(entries)))
	case took > slowStart:
		r.set(ruleHandshake, warned("load slow parts on first use: each call starts a process", "it took %s", short(took)))
	default:
		r.set(ruleHandshake, passed("in %s", short(took)))
	}
}

// doByHand starts the binary as a curious user does.
func doByHand(ctx context.Context, b *bench, r *reply) {
	const fix = "exit with a status other than 0 and a message for people unless TOOLHOST_PLUGIN=toolhost.plugin.v1 is in the environment"
	ctx, cancel := context.WithTimeout(ctx, b.job.patience())
	defer cancel()
	cmd := exec.CommandContext(ctx, b.job.Binary, b.job.Args...)
	cmd.Env, cmd.Dir = plugin.Environ(), b.job.Dir
	said := &kept{}
	cmd.Stdout, cmd.Stderr = said, said
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	text := strings.TrimSpace(said.String())
	switch {
	case ctx.Err() != nil:
		r.set(ruleByHand, failed(fix, "started without a host it still ran after %s", b.job.patience()))
	case cmd.ProcessState == nil:
		r.set(ruleByHand, failed(fix, "it could not be started: %v", err))
	case err == nil:
		r.set(ruleByHand, warned(fix, "it exited with status 0"))
	case text == "":
		r.set(ruleByHand, warned(fix, "it said nothing (%v)", cmd.ProcessState))
	case strayed(text):
		r.set(ruleByHand, warned(fix, "what it says is a stack trace: %q", excerpt(lastLine(text))))
	default:
		r.set(ruleByHand, passed("it says %q", excerpt(strings.SplitN(text, "\n", 2)[0])))
	}
}

// traces are what runtimes begin a stack trace with: Python, Go, the JVM, Node,
// Rust, and Ruby.
var traces = regexp.MustCompile(`(?m)^Traceback \(most recent call last\):|^(panic|fatal error): |^goroutine \d+ \[|^Exception in thread |^\s+at \S.*[(:]\S*:\d+|^thread '.*' .*panicked at |^\s+from \S+:\d+:in `)

// strayed reports whether text holds a stack trace, which is for the tool's
// author and not for its users.
func strayed(text string) bool { return traces.MatchString(text) }

func lastLine(text string) string { return text[strings.LastIndex(text, "\n")+1:] }

// doDescribe asks twice in one process, and once in another.
func doDescribe(ctx context.Context, b *bench, r *reply) {
	var first *pluginv1.DescribeResponse
	f := b.with(ctx, func(c *child) Finding {
		var problem Finding
		if first, problem = c.describe(ctx); first == nil {
			return problem
		}
		return c.describesAgain(ctx, first, "a second time")
	})
	if f.Status == Pass {
		f = b.with(ctx, func(c *child) Finding { return c.describesAgain(ctx, first, "in another process") })
	}
	if n := len(first.GetTools()); f.Status == Pass && (n == 0 || n > maxTools) {
		f = failed("describe between 1 and 1024 tools", "it describes %d tools", n)
	}
	if f.Status == Pass {
		r.Description, _ = proto.Marshal(first)
	}
	r.set(ruleDescribe, f)
}

// maxTools is what hosts take from one binary.
const maxTools = 1024

func (c *child) describe(ctx context.Context) (*pluginv1.DescribeResponse, Finding) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.patience, fmt.Errorf("no answer within %s", c.patience))
	defer cancel()
	response, err := c.conn.Describe(ctx)
	if problem := response.GetError(); err == nil && problem != nil {
		err = errors.New(problem.GetMessage())
	}
	if err == nil {
		return response, Finding{}
	}
	if ended := c.endedSoon(); ended != "" {
		err = fmt.Errorf("%w (%s)", err, ended)
	}
	return nil, failed("answer Describe at once, without files or a network", "Describe: %v", err)
}

func (c *child) describesAgain(ctx context.Context, first *pluginv1.DescribeResponse, when string) Finding {
	again, problem := c.describe(ctx)
	if again == nil {
		return problem
	}
	if !proto.Equal(first, again) {
		return failed("describe the same tools whatever was asked before: hosts remember the answer by the binary's hash",
			"it describes itself differently %s: %s", when, difference(first, again))
	}
	return passed("%s", count(len(first.GetTools()), "tool", "tools"))
}

// difference names the first thing that differs.
func difference(a, b *pluginv1.DescribeResponse) string {
	if a.GetVersion() != b.GetVersion() {
		return fmt.Sprintf("version %q, then %q", a.GetVersion(), b.GetVersion())
	}
	if len(a.GetTools()) != len(b.GetTools()) {
		return fmt.Sprintf("%d tools, then %d", len(a.GetTools()), len(b.GetTools()))
	}
	for i, tool := range a.GetTools() {
		if !proto.Equal(tool, b.GetTools()[i]) {
			return fmt.Sprintf("tool %q", tool.GetName())
		}
	}
	return "in what this program does not know"
}

// nobody is the id of a call that never was.
const nobody = "conformance-nobody"

func doReplies(ctx context.Context, b *bench, r *reply) {
	r.set(ruleReplies, b.with(ctx, func(c *child) Finding {
		ctx, cancel := context.WithTimeout(ctx, b.job.patience())
		defer cancel()
		answer := &pluginv1.AnswerRequest{CallId: nobody, InteractionId: "1", Outcome: pluginv1.AnswerRequest_OUTCOME_TIMED_OUT}
		for _, try := range []struct {
			name string
			do   func() error
		}{
			{"Cancel", func() error { return c.conn.Cancel(ctx, nobody, "conformance") }},
			{"Answer", func() error { return c.conn.Answer(ctx, answer) }},
			{"Acknowledge", func() error { return c.conn.Acknowledge(ctx, nobody, 1) }},
		} {
			if err := try.do(); err != nil {
				return failed("serve all five methods of toolhost.plugin.v1.Tool; a call that is over is not an error", "%s of an unknown call: %v%s", try.name, err, suffix(c.ended()))
			}
		}
		if _, problem := c.describe(ctx); problem.Status == Fail {
			return problem
		}
		return passed("all three")
	}))
}

func suffix(ended string) string {
	if ended == "" {
		return ""
	}
	return " (" + ended + ")"
}

// notFound is how host words that status.
const notFound = "the tool answered with gRPC status NotFound"

func doUnknown(ctx context.Context, b *bench, r *reply) {
	const fix = "answer a call of an unknown tool with gRPC status NOT_FOUND"
	r.set(ruleUnknown, b.with(ctx, func(c *child) Finding {
		o := c.call(ctx, &pluginv1.CallRequest{CallId: "1", Tool: "no_such_tool", Arguments: []byte("{}")}, b.job.patience())
		switch {
		case o.crashed():
			return failed(fix, "it ended: %s", c.endedSoon())
		case o.timedOut:
			return failed(fix, "no answer within %s", b.job.patience())
		case o.succeeded():
			return failed(fix, "a call of the tool no_such_tool succeeded")
		case !strings.HasPrefix(o.problem(), notFound):
			return failed(fix, "a call of the tool no_such_tool came to %s: it may have been done by another tool", o.summary())
		}
		if _, problem := c.describe(ctx); problem.Status == Fail {
			return failed(fix, "after that it does not answer: %s", problem.Detail)
		}
		return passed("%s", o.summary())
	}))
}
