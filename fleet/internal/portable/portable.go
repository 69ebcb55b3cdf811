// Package portable writes a supervisor.Request as JSON for another machine, and reads it.
// A part that is not portable is refused by name, and never left out.
package portable

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/network"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

const (
	// MaxBytes bounds a request on the wire.
	MaxBytes = 512 << 10
	// MaxQuestionBytes bounds a question there, and its answer.
	MaxQuestionBytes = 256 << 10
	// maxSecretBytes bounds a call's secrets, which go in one message.
	maxSecretBytes = 512 << 10
)

// ErrTooLong is of a request whose JSON is over MaxBytes, though what it is made of is not.
var ErrTooLong = errors.New("a call of more than 512 KiB")

// keptOutput is how much output the caller is sent that wants none shown: it has to be
// there if the call is lost.
const keptOutput = 1 << 20

// Request is the portable part of a supervisor.Request. Its fields are that one's.
type Request struct {
	Tool      *supervisor.Tool `json:"tool,omitempty"`
	Argv      []string         `json:"argv,omitempty"`
	Source    json.RawMessage  `json:"source,omitempty"` // of a CommandTool
	Name      string           `json:"name"`
	Arguments json.RawMessage  `json:"arguments,omitempty"`
	Meta      json.RawMessage  `json:"meta,omitempty"`
	ID        string           `json:"id"`
	Place     api.Place        `json:"place"`
	SHA256    string           `json:"sha256,omitempty"`
	Env       []string         `json:"env,omitempty"`

	Timeout  time.Duration           `json:"timeoutNs,omitempty"`
	Timeouts []budget.Ask            `json:"timeouts,omitempty"`
	Profiles map[string][]budget.Ask `json:"profiles,omitempty"`
	Stream   budget.Stream           `json:"stream"`
	Grace    time.Duration           `json:"graceNs,omitempty"`
	Limits   supervisor.Limits       `json:"limits"`

	Tier       string          `json:"tier,omitempty"`
	Strict     bool            `json:"strict,omitempty"`
	Require    []string        `json:"require,omitempty"`
	Allow      []string        `json:"allow,omitempty"`
	Network    string          `json:"network,omitempty"`
	Grants     []network.Grant `json:"grants,omitempty"`
	AskNetwork bool            `json:"askNetwork,omitempty"`
	// Paths are those of the worker.
	Read  []string `json:"read,omitempty"`
	Write []string `json:"write,omitempty"`
	Dir   string   `json:"dir,omitempty"`

	Method string           `json:"method,omitempty"`
	Client json.RawMessage  `json:"client,omitempty"`
	Rounds bool             `json:"rounds,omitempty"`
	Keep   *supervisor.Keep `json:"keep,omitempty"`
	// Secrets have no values: those go to the one worker that is told to start the call,
	// sealed for it.
	Secrets []supervisor.Secret `json:"secrets,omitempty"`
	Caller
	EventOutputBytes int64 `json:"eventOutputBytes,omitempty"`
}

// Caller is what the caller does with what comes of a call.
type Caller struct {
	// Asks: there is somebody who can be asked.
	Asks bool `json:"asks,omitempty"`
	// Quiet: nobody wants events. Output is kept for the case that the call is lost.
	Quiet bool `json:"quiet,omitempty"`
}

// Write writes the portable part of a request for which Stays is empty, with what the
// caller's own configuration adds to it: so the call runs there as it would have here.
// sha256 is that of the tool's executable.
func Write(r supervisor.Request, config supervisor.Config, sha256 string) ([]byte, error) {
	p := policyOf(r, config)
	out := Request{
		Name: r.ToolName(), Arguments: r.Arguments, Meta: r.Meta, ID: r.ID, Place: r.Place, SHA256: sha256, Env: r.Env,
		Timeout: r.Timeout, Timeouts: slices.Concat(config.Timeouts, r.Timeouts),
		Profiles: profiles(config.Profiles, r.Profiles), Stream: r.Stream, Grace: r.Grace,
		Limits: r.Limits.Over(config.Limits).Over(supervisor.DefaultLimits()),
		Tier:   p.Tier, Strict: p.Strict, Require: p.Require, Allow: p.Allow, EventOutputBytes: r.EventOutputBytes,
		Network: p.Network, Grants: p.Grants, AskNetwork: p.AskNetwork, Read: p.Read, Write: p.Write, Dir: r.Dir,
		Method: r.Method, Client: r.Client, Rounds: r.Rounds, Keep: r.Keep, Secrets: r.Secrets, Caller: Caller{Asks: r.Ask != nil, Quiet: r.Events == nil},
	}
	if out.EventOutputBytes < 0 {
		out.EventOutputBytes = keptOutput
	}
	out.Grace = cmp.Or(out.Grace, config.Grace)
	if r.Command == nil {
		tool := r.Tool
		if tool.Adapter { // each machine has its own
			tool.Path, out.SHA256 = "", ""
		}
		out.Tool = &tool
	} else {
		out.Argv = r.Command.Argv
		out.Tool = &supervisor.Tool{ReadOnly: r.Tool.ReadOnly, Idempotent: r.Tool.Idempotent}
		if r.Command.Tool != nil {
			out.Source = r.Command.Tool.Spec().Source
		}
	}
	var raw bytes.Buffer
	e := json.NewEncoder(&raw)
	e.SetEscapeHTML(false) // which would write six bytes for one of them
	err := e.Encode(out)
	if err == nil && raw.Len() > MaxBytes {
		err = ErrTooLong
	}
	return raw.Bytes(), err
}

// Definition is the same for calls that can share a kept process.
func Definition(r supervisor.Request) string {
	var argv []string
	if r.Command != nil {
		argv = r.Command.Argv
	}
	return fmt.Sprintf("%q %q %q %q %q", r.Tool.Path, r.Tool.Args, argv, r.Env, r.Dir)
}

// profiles joins the asks of both, the request's last.
func profiles(config, request map[string][]budget.Ask) map[string][]budget.Ask {
	out := map[string][]budget.Ask{}
	for _, from := range []map[string][]budget.Ask{config, request} {
		for name, asks := range from {
			out[name] = slices.Concat(out[name], asks)
		}
	}
	return out
}

// Machine is what a worker's has in place of the caller's.
type Machine struct {
	// CommandTool makes the tool of a command from its CommandSpec.Source, and Adapter is
	// the executable of adapters; without them such calls are refused.
	CommandTool func(source json.RawMessage) (*supervisor.CommandTool, error)
	Adapter     string
}

// unknownYet stands for a secret until its call is to start.
const unknownYet = "a secret that has not come yet"

// Read reads what Write has written, strictly: a field that this release does not know is
// an error, for it may have meant a bound. The secrets have no values yet.
func Read(raw []byte, m Machine) (r supervisor.Request, c Caller, err error) {
	if len(raw) > MaxBytes {
		return r, c, fmt.Errorf("the request has %d bytes, over %d", len(raw), MaxBytes)
	}
	var in Request
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return r, c, fmt.Errorf("cannot read the request: %w", err)
	}
	if in.Tool == nil {
		return r, c, errors.New("the request names no tool")
	}
	r = in.request()
	if err := in.program(&r, m); err != nil {
		return r, c, err
	}
	if names := stays(r, supervisor.Config{}, true); len(names) > 0 {
		return r, c, fmt.Errorf("a worker cannot do this: %q", names)
	}
	return r, in.Caller, nil
}

// request is all but what is to be run.
func (in Request) request() supervisor.Request {
	r := supervisor.Request{
		Tool: *in.Tool, Name: in.Name, Arguments: in.Arguments, Meta: in.Meta, ID: in.ID, Place: in.Place, SHA256: in.SHA256, Env: in.Env,
		Timeout: in.Timeout, Timeouts: in.Timeouts, Profiles: in.Profiles, Stream: in.Stream, Grace: in.Grace, Limits: in.Limits,
		Sandbox: &sandbox.Policy{
			Tier: in.Tier, Network: in.Network, Grants: in.Grants, AskNetwork: in.AskNetwork, Read: in.Read, Write: in.Write,
			Strict: in.Strict, Require: in.Require, Allow: in.Allow,
		},
		Dir: in.Dir, Method: in.Method, Client: in.Client, Rounds: in.Rounds, Keep: in.Keep, Secrets: in.Secrets, EventOutputBytes: in.EventOutputBytes,
	}
	for i := range r.Secrets {
		r.Secrets[i].Value = unknownYet
	}
	return r
}

// program sets what is to be run.
func (in Request) program(r *supervisor.Request, m Machine) (err error) {
	switch {
	case r.Tool.Adapter && m.Adapter == "":
		return errors.New("this worker has no adapter of MCP servers")
	case r.Tool.Adapter:
		r.Tool.Path = m.Adapter
	case len(in.Argv) > 0:
		r.Command = &supervisor.Command{Argv: in.Argv}
	}
	if r.Command == nil || len(in.Source) == 0 {
		return nil
	}
	if m.CommandTool == nil {
		return errors.New("this worker makes no command tools")
	}
	if r.Command.Tool, err = m.CommandTool(in.Source); err != nil {
		return fmt.Errorf("cannot make the command's tool: %w", err)
	}
	return nil
}

// Reveal gives a request that was read the values of its secrets.
func Reveal(r *supervisor.Request, values []string) error {
	if len(values) != len(r.Secrets) {
		return fmt.Errorf("%d secrets have come for %d", len(values), len(r.Secrets))
	}
	for i, value := range values {
		r.Secrets[i].Value = value
	}
	return nil
}
