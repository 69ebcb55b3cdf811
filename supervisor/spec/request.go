// Package spec defines a supervisor's requests: plain data. Programs use these types by
// their names in package supervisor.
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

// Tool names a plugin binary, and the tool in it.
type Tool struct {
	// Path is the plugin's executable. A name without a slash is looked up in
	// PATH.
	Path string
	// Label is the name of the executable in errors; empty means its path. For an
	// adapter it names the program behind it.
	Label string
	// Name is the tool in the binary; it may be empty if there is only one.
	Name string
	// Args follow the executable's name in its argument vector.
	Args []string
	// ReadOnly and Idempotent are the operator's confirmation of the tool's
	// claims, also of a Command's. Only they make a failed call retryable.
	ReadOnly, Idempotent bool
	// Adapter is set if the executable is toolhost's own and runs the tool: its
	// processes and threads are added to the limit, and a Describe of it has all
	// grants of its calls. A Describe of another executable has none.
	Adapter bool
	// DescribeTimeout bounds a Describe of the tool; zero means 10 s, and the
	// maximum is 60 s. A call that needs a Describe waits for it no longer than the
	// call's own timeout; see Supervisor.Describe.
	DescribeTimeout time.Duration
}

// Command is a plain command, run through the command adapter.
type Command struct {
	// Argv is the command and its arguments. An Argv[0] without a slash is
	// looked up in the PATH of the command's environment.
	Argv []string
	// Tool, if set, makes the rest of Argv, and Stdin, from the call's arguments.
	Tool *CommandTool
	// Stdin is copied to the command; nil means empty input. The end of the call
	// does not wait for a Read in progress.
	Stdin io.Reader
	// Stdout and Stderr, if not nil, get every byte. The command blocks while they
	// block; if one fails, the command gets a broken pipe.
	Stdout, Stderr io.Writer
}

// Request describes one call. Either Tool.Path or Command must be set.
type Request struct {
	Tool    Tool
	Command *Command
	// Name is the tool's name in events, the result and its message; empty means
	// the name in the binary.
	Name string
	// Arguments is a JSON object with the tool's arguments; nil means {}.
	Arguments json.RawMessage
	// Method, if not empty, is a request of an Adapter's protocol other than a tool
	// call, such as MCP's prompts/get, with Arguments as its parameters; the tool's
	// name is then ignored. Client is a JSON object that tells the adapter who asks;
	// nothing else reads it.
	Method string
	Client json.RawMessage
	// Rounds ends the call when the adapter's server sends a request instead of a
	// result; the request is then in the result's Meta.
	Rounds bool
	// Meta is a JSON object besides the arguments, as MCP's _meta. A timeout hint
	// in it counts as requested by the call.
	Meta json.RawMessage
	// Timeout is the timeout, from admission, that the call requests. It may be
	// clamped, and Meta or the arguments may request another. 0 requests none.
	Timeout time.Duration
	// Timeouts are added to the supervisor's, such as this call's own
	// (budget.LayerClient, with a Max) or the operator's for this tool.
	Timeouts []budget.Ask
	// Profiles are added to the supervisor's, for other timeout profiles.
	Profiles map[string][]budget.Ask
	// Stream bounds the waits between messages; zero fields are off.
	Stream budget.Stream
	// Grace is as in Config; zero means the supervisor's.
	Grace time.Duration
	// Limits are the call's limits; zero fields mean the supervisor's.
	Limits Limits
	// Sandbox is the call's policy; nil means the supervisor's.
	Sandbox *sandbox.Policy
	// FilesTo, if set, is a folder on the host to which the files in a sandboxed
	// call's workspace are copied at its end; see package sandbox/export.
	FilesTo string
	// Env entries (KEY=VALUE) are added to the few variables that tools
	// inherit. Dir is the working directory. A sandboxed call must have a grant
	// of it, or of something in it. Empty means the host's working directory if
	// that is granted, else the workspace.
	Env []string
	Dir string
	// Secrets are credentials for the call; at most 32 of them are files.
	Secrets []Secret
	// SHA256, if set, is the hash in hexadecimal that the executable, or the
	// command, must have.
	SHA256 string
	// Anew makes Describe run the binary even if its description is cached.
	Anew bool
	// Lock is held while the call runs. The call waits for it before its timeout
	// begins, as long as the timeout or, if that is longer, as for a slot.
	Lock Lock
	// Pool, if set, bounds how many such calls run at once.
	Pool Pool
	// Share identifies whom the call is for, if several parties share the slots.
	Share Share
	// Keep, if set, lets the tool's process serve later calls too.
	Keep *Keep
	Placement
	// ID identifies the call in events and results; empty makes one.
	ID string
	// LogArgs are the keys and values that identify the call in log lines; empty means
	// "call" and its ID.
	LogArgs []any
	// Ask asks a human a question of the tool and waits for the answer, on its own
	// goroutine, while the call's clocks are stopped. It must return when ctx ends.
	// If Ask is nil, questions are answered as in a headless turn.
	Ask func(ctx context.Context, q Question) Answer
	// Place locates the call; the tool gets it.
	Place api.Place
	// Host, if not nil, serves the tool's requests to its host. The listener is a unix
	// socket that only this call's processes can reach, at the path in their variable
	// TOOLHOST_TURNS_SOCKET. Host must return soon after the listener is closed, which
	// happens when the call ends or begins to be ended. Calls of a kept process, which
	// serves many, cannot have one.
	Host func(net.Listener)
	// Events, if not nil, receives the call's events. Sends do not block: events that
	// do not fit are dropped, and the next one counts them in Missed. The channel is
	// not closed.
	Events chan<- api.Event
	// EventOutputBytes bounds the output in events, where each event counts at least
	// 256 bytes; the rest counts as missed. 0 means 4 MiB, negative no output.
	EventOutputBytes int64
}

// Ahead returns the request without the parts of a single call, for a process that is
// started before its call.
func (r Request) Ahead() Request {
	r.Arguments, r.Method, r.Client, r.Rounds, r.Meta, r.Timeout = nil, "", nil, false, nil, 0
	r.FilesTo, r.ID, r.LogArgs, r.Place, r.Reserved, r.Placed, r.Left, r.OnRecord, r.Ask, r.Events = "", "", nil, api.Place{}, false, nil, nil, nil, nil, nil
	return r
}

// PrestartBudget bounds the processes that wait for calls, of all tools together.
type PrestartBudget struct {
	// Processes is how many may wait at once; zero means two per CPU, and at least
	// four. Negative turns prestarting off.
	Processes int
	// MemoryBytes bounds the memory of all of them; zero means 512 MiB, or a quarter of
	// the limit of all calls together if that is less.
	MemoryBytes int64
	// NoSandboxes turns off making sandboxes in advance. Otherwise some are made after
	// calls, for similar later calls: as many as Processes may wait, without a program,
	// for at most a minute each.
	NoSandboxes bool
}

// Sandboxes returns how many sandboxes may wait; Processes must be set.
func (b PrestartBudget) Sandboxes() int {
	if b.NoSandboxes {
		return 0
	}
	return b.Processes
}

// MaxPrestart is the greatest value of Placement.Prestart.
const MaxPrestart = 64

// Placement says which process, and which machine, runs a call.
type Placement struct {
	// Prestart is how many processes are to wait for such calls, at most MaxPrestart.
	// Each is started in its sandbox in advance and serves one call, which begins in a
	// fraction of the time and gets a process as fresh as its own. If none waits, or
	// none may, the call starts one. See Supervisor.Prestart.
	Prestart int
	// Where are the labels that a worker of a fleet must have to run the call. A
	// supervisor without a fleet refuses such a call.
	Where map[string]string
	// Reserved is set if the call has a slot (see Supervisor.Reserve) and must not wait.
	Reserved bool
	// Lease, if not nil, ends the call's processes when it expires, even if the
	// supervisor is gone.
	Lease *sandbox.Lease
	// Placed, if not nil, is called before a worker is told to start the call, and must
	// record that; on an error the call is not started. If this machine runs the call after
	// all, Placed is called for that with an empty name.
	Placed func(worker string, attempt int) error
	// Left, if not nil, is called once the call has its slot, or before a worker is told to
	// start it. It returns how long the call may still run, or why it must not start.
	Left func() (time.Duration, error)
	// OnRecord, if not nil, returns once the call is on record, or an error, and then the
	// call is not started. Preparations that do not run the tool go on meanwhile. ctx ends
	// when the call is aborted. For a worker's call only Placed is called if it is set;
	// otherwise OnRecord is called for each worker anew.
	OnRecord func(ctx context.Context) error
}

// ToolName returns the name of the call's tool before it is described.
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

// Check returns an error if the request is invalid on every machine: if it has both a Tool's
// program and a Command, or a name that is not UTF-8, as messages need.
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
