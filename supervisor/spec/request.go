// Package spec is what a supervisor is asked to run: data alone. Programs use these
// types by their names in package supervisor.
package spec

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"time"
	"unicode/utf8"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/sandbox"
)

// Tool names what to run: a plugin binary, and the tool in it.
type Tool struct {
	// Path is the plugin's executable. A name without a slash is looked up in
	// PATH.
	Path string
	// Label is what errors call the executable; empty is its path. An adapter's is
	// what stands behind it.
	Label string
	// Name is the tool in the binary; empty if it has only one.
	Name string
	// Args follow the executable's name in its argument vector.
	Args []string
	// ReadOnly and Idempotent are the operator's confirmation of the tool's
	// own claims, also of a Command's; only they make a failed call retryable.
	ReadOnly, Idempotent bool
	// Adapter says that the executable is toolhost's own, and the tool is what it
	// runs: its own processes and threads come on top of the limit, and it is
	// granted all that its calls are when it is asked what tools it has. Another
	// executable is granted nothing for that.
	Adapter bool
	// DescribeTimeout is how long the tool may take to say what tools it has; zero
	// is 10 s, and more than 60 s are 60 s. A call that needs that said, and whose
	// own timeout is shorter, waits no longer than that; see Describe.
	DescribeTimeout time.Duration
}

// Command is a plain command, run through the command adapter.
type Command struct {
	// Argv is the command and its arguments; Argv[0] is looked up in the
	// PATH of its environment if it has no slash.
	Argv []string
	// Tool, if set, makes the rest of Argv, and Stdin, of the call's arguments.
	Tool *CommandTool
	// Stdin is copied to the command; nil is empty input. A Read that is
	// going on when the call ends is not waited for.
	Stdin io.Reader
	// Stdout and Stderr, if not nil, get every byte, and hold the command back
	// while they block. When one fails, the command sees a broken pipe.
	Stdout, Stderr io.Writer
}

// Request is one call. Tool.Path or Command must be set, and not both.
type Request struct {
	Tool    Tool
	Command *Command
	// Name is what the tool is called in events, the result and its message;
	// empty is its own name.
	Name string
	// Arguments are the tool's, a JSON object; nil is {}.
	Arguments json.RawMessage
	// Method, if not empty, is a request of an Adapter's protocol that is not a call
	// of a tool, such as MCP's prompts/get, with Arguments as its parameters; the
	// tool's name then says nothing. Client is what the adapter is to know of who
	// asks, an object that nobody else reads.
	Method string
	Client json.RawMessage
	// Rounds: where the adapter's server asks for something instead of a result, that
	// is the result's Meta, and the call has ended.
	Rounds bool
	// Meta is a JSON object beside the arguments, as MCP's _meta; its timeout
	// hint is taken as the call's own wish.
	Meta json.RawMessage
	// Timeout is how long the call may take from admission on, as this call's own
	// wish: it is clamped as any, and Meta or arguments may ask for another. 0 asks
	// for nothing.
	Timeout time.Duration
	// Timeouts are asks on top of the supervisor's, such as this call's own
	// (budget.LayerClient, with a Max) or the operator's for this tool.
	Timeouts []budget.Ask
	// Profiles are asks of other timeout profiles on top of the supervisor's.
	Profiles map[string][]budget.Ask
	// Stream bounds the waits between messages; zero fields are off.
	Stream budget.Stream
	// Grace as in Config, for this call; zero is the supervisor's.
	Grace time.Duration
	// Limits of this call; zero fields are the supervisor's.
	Limits Limits
	// Sandbox is what the call may touch; nil is the supervisor's policy.
	Sandbox *sandbox.Policy
	// FilesTo, if set, is a folder on the host that gets what a sandboxed call
	// leaves in its workspace; see package sandbox/export for what is taken.
	FilesTo string
	// Env entries (KEY=VALUE) are added to the few variables that tools
	// inherit. Dir is the working directory, which a sandboxed call must have
	// been granted, or something in it; empty is the host's if that is so, else
	// the workspace.
	Env []string
	Dir string
	// Secrets are credentials for the call; at most 32 of them are files.
	Secrets []Secret
	// SHA256, if set, must be the executable's (that of the command, if it is
	// one), in hexadecimal.
	SHA256 string
	// Anew has Describe ask, whatever it remembers.
	Anew bool
	// Lock is held while the call runs, and waited for before its timeout begins:
	// for as long as that timeout is, or at least as for a slot.
	Lock Lock
	// Pool, if set, bounds how many such calls run at once.
	Pool Pool
	// Share says who the call is for, where several share the slots.
	Share Share
	// Keep, if set, lets the tool's process serve later calls too.
	Keep *Keep
	Placement
	// ID identifies the call in events and results; empty makes one.
	ID string
	// LogArgs are the keys and values by which log lines name the call; empty means "call"
	// and its ID.
	LogArgs []any
	// Ask puts a question of the tool to a human and waits for the answer, on a
	// goroutine of its own, while the call's clocks stand still. It must return
	// when ctx ends. nil answers that nobody is there.
	Ask func(ctx context.Context, q Question) Answer
	// Place says where the call stands; the tool may know it.
	Place api.Place
	// Host, if not nil, serves what the call's tool asks of its host. It is given a
	// unix socket that only this call's processes reach, at the path in their variable
	// TOOLHOST_TURNS_SOCKET, and must return soon after that is closed: when the call
	// ends, or begins to be ended. A kept process, which serves many calls, cannot
	// have one.
	Host func(net.Listener)
	// Events, if not nil, gets the call's events as far as it has room: a slow
	// reader misses some, which the next one counts, and never slows the call.
	// It is not closed.
	Events chan<- api.Event
	// EventOutputBytes bounds the output in events, each counted as at least 256
	// bytes; the rest counts as missed. 0 means 4 MiB, less means no output.
	EventOutputBytes int64
}

// Ahead is the request without what is a single call's: that by which a process is
// started before there is one.
func (r Request) Ahead() Request {
	r.Arguments, r.Method, r.Client, r.Rounds, r.Meta, r.Timeout = nil, "", nil, false, nil, 0
	r.FilesTo, r.ID, r.LogArgs, r.Place, r.Reserved, r.Placed, r.Left, r.OnRecord, r.Ask, r.Events = "", "", nil, api.Place{}, false, nil, nil, nil, nil, nil
	return r
}

// PrestartBudget bounds the processes that wait for calls, of all tools together.
type PrestartBudget struct {
	// Processes may wait at once; zero is two per CPU, and four at least. Less than
	// zero has none started before its call.
	Processes int
	// MemoryBytes is what they may have together; zero is 512 MiB, or a quarter of
	// what all calls may have together if that is less.
	MemoryBytes int64
	// NoSandboxes has the sandbox of each call made for it. Otherwise some are made behind
	// calls, for those that are like them: as many as Processes may wait without a program,
	// each for a minute at most.
	NoSandboxes bool
}

// Sandboxes is how many may wait; Processes is set.
func (b PrestartBudget) Sandboxes() int {
	if b.NoSandboxes {
		return 0
	}
	return b.Processes
}

// MaxPrestart bounds the processes that one request may have wait for its calls.
const MaxPrestart = 64

// Placement says by which process, and on which machine, a call is made.
type Placement struct {
	// Prestart is how many processes are to wait for such calls, each started in its
	// whole sandbox before there is a call, and used by one: the call that takes it has
	// it in a fraction of the time, and as fresh as its own. Where none waits, or none
	// may, the call starts its own. At most MaxPrestart. See Supervisor.Prestart.
	Prestart int
	// Where are the labels that a worker of a fleet must have to run the call; a
	// supervisor by itself refuses such a call.
	Where map[string]string
	// Reserved: there is a slot for the call (Supervisor.Reserve), and it waits for none.
	Reserved bool
	// Lease, if not nil, ends the call's processes when it is over, whatever becomes of
	// the supervisor.
	Lease *sandbox.Lease
	// Placed, if not nil, is called before a worker is told to start the call, and must
	// keep that on record: with an error the call is not started. Where this machine makes the
	// call after all, it is called for that with an empty name.
	Placed func(worker string, attempt int) error
	// Left, if not nil, is called once the call has its slot, or before a worker is told to
	// start it, and says for how long it may run by now, or why it is not to be made.
	Left func() (time.Duration, error)
	// OnRecord, if not nil, returns once it is on record that there is the call, or why it
	// is not: then the call is not started. What may come before the start, which is nothing
	// of the tool's own, is done meanwhile. ctx ends when the call is aborted. Of a worker's
	// call Placed is called alone, where there is one; otherwise this, for each worker anew.
	OnRecord func(ctx context.Context) error
}

// ToolName is what the call's tool is called before it is described.
func (r Request) ToolName() string {
	switch {
	case r.Name != "":
		return r.Name
	case r.Command != nil && r.Command.Tool != nil:
		return r.Command.Tool.Description().GetName()
	case r.Command != nil && len(r.Command.Argv) > 0:
		return baseName(r.Command.Argv[0])
	case r.Tool.Name != "":
		return r.Tool.Name
	}
	return baseName(r.Tool.Path)
}

// Check returns an error for what no call can have, on whatever machine: the program of a
// Tool beside a Command, for one alone would run, or a name that is not UTF-8, which no
// message can hold.
func (r Request) Check() error {
	if r.Command != nil && (r.Tool.Path != "" || len(r.Tool.Args) > 0 || r.Tool.Adapter) {
		return fmt.Errorf("it has a Command, and a Tool with a program of its own (Path %q): leave one of them out", r.Tool.Path)
	}
	for _, one := range []struct{ name, text string }{
		{"ID", r.ID},
		{"Tool.Name", r.Tool.Name},
		{"Method", r.Method},
		{"Place.CallID", r.Place.CallID},
		{"Place.TurnID", r.Place.TurnID},
		{"Place.SessionID", r.Place.SessionID},
		{"Place.AgentID", r.Place.AgentID},
		{"Place.ParentTurnID", r.Place.ParentTurnID},
	} {
		if !utf8.ValidString(one.text) {
			return fmt.Errorf("its %s %q is not UTF-8: give another", one.name, one.text)
		}
	}
	return nil
}

func baseName(path string) string {
	if path == "" {
		return ""
	}
	return filepath.Base(path)
}
