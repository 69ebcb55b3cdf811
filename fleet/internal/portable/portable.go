// Package portable writes a supervisor.Request as JSON for another machine, and reads it.
// A part that is not portable is refused by name, and never left out.
package portable

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

// MaxBytes bounds a request on the wire.
const MaxBytes = 512 << 10

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

	Tier             string   `json:"tier,omitempty"`
	Strict           bool     `json:"strict,omitempty"`
	Require          []string `json:"require,omitempty"`
	Allow            []string `json:"allow,omitempty"`
	EventOutputBytes int64    `json:"eventOutputBytes,omitempty"`
}

// feature is one that a request may use and a worker cannot do yet.
type feature struct {
	name string
	used func(r supervisor.Request, p sandbox.Policy) bool
}

const ownProfile = "a timeout profile of the host's own"

// features are all of them, by the names that people are shown.
var features = []feature{
	{"files of this machine (read)", func(_ supervisor.Request, p sandbox.Policy) bool { return len(p.Read) > 0 }},
	{"files of this machine (write)", func(_ supervisor.Request, p sandbox.Policy) bool { return len(p.Write) > 0 }},
	{"a workspace that stays", func(_ supervisor.Request, p sandbox.Policy) bool { return p.Workspace != "" }},
	{"network", func(_ supervisor.Request, p sandbox.Policy) bool {
		return p.Network != "" && p.Network != sandbox.NetworkNone || len(p.Grants) > 0 || p.AskNetwork
	}},
	{"no sandbox (tier none)", func(_ supervisor.Request, p sandbox.Policy) bool { return p.Tier == sandbox.TierNone }},
	{"an MCP server", func(r supervisor.Request, _ sandbox.Policy) bool {
		return r.Tool.Adapter || r.Method != "" || len(r.Client) > 0
	}},
	{"a kept process", func(r supervisor.Request, _ sandbox.Policy) bool { return r.Keep != nil }},
	{"secrets", func(r supervisor.Request, _ sandbox.Policy) bool { return len(r.Secrets) > 0 }},
	{"files taken out of the workspace", func(r supervisor.Request, _ sandbox.Policy) bool { return r.FilesTo != "" }},
	{"a working directory", func(r supervisor.Request, _ sandbox.Policy) bool { return r.Dir != "" }},
	{"a lock on data of this machine", func(r supervisor.Request, _ sandbox.Policy) bool { return r.Lock.File != "" }},
	{"turns of its own", func(r supervisor.Request, _ sandbox.Policy) bool { return r.Host != nil }},
	{"a pool", func(r supervisor.Request, _ sandbox.Policy) bool { return r.Pool.Running > 0 }},
	{"a quota of running calls, memory or CPU", func(r supervisor.Request, _ sandbox.Policy) bool {
		return r.Share.Running > 0 || r.Share.Waiting > 0 || r.Share.Bounded()
	}},
	{"stdin, stdout or stderr of the caller's", func(r supervisor.Request, _ sandbox.Policy) bool {
		c := r.Command
		return c != nil && (c.Stdin != nil || c.Stdout != nil || c.Stderr != nil)
	}},
	{"a command made of Go functions", func(r supervisor.Request, _ sandbox.Policy) bool {
		return r.Command != nil && r.Command.Tool != nil && len(r.Command.Tool.Spec().Source) == 0
	}},
	{"limits of I/O by device", func(r supervisor.Request, _ sandbox.Policy) bool { return len(r.Limits.IOMax) > 0 }},
	{"a tool that does not fit the wire", func(r supervisor.Request, _ sandbox.Policy) bool {
		return len(r.Arguments)+len(r.Meta) > MaxBytes/2
	}},
}

// Stays are the names of what the call uses and a worker cannot do yet: for these it
// stays on the caller's machine.
func Stays(r supervisor.Request, config supervisor.Config) (names []string) {
	for _, f := range features {
		if f.used(r, policyOf(r, config)) {
			names = append(names, f.name)
		}
	}
	if config.Profile.Name != "" {
		names = append(names, ownProfile)
	}
	return names
}

func policyOf(r supervisor.Request, config supervisor.Config) sandbox.Policy {
	if r.Sandbox != nil {
		return *r.Sandbox
	}
	return config.Sandbox
}

// Write writes the portable part of a request for which Stays is empty, with what the
// caller's own configuration adds to it: so the call runs there as it would have here.
// sha256 is that of the tool's executable.
func Write(r supervisor.Request, config supervisor.Config, sha256 string) ([]byte, error) {
	p := policyOf(r, config)
	out := Request{
		Name: r.ToolName(), Arguments: r.Arguments, Meta: r.Meta, ID: r.ID, Place: r.Place, SHA256: sha256, Env: r.Env,
		Timeout: r.Timeout, Timeouts: append(config.Timeouts[:len(config.Timeouts):len(config.Timeouts)], r.Timeouts...),
		Profiles: profiles(config.Profiles, r.Profiles), Stream: r.Stream, Grace: r.Grace,
		Limits: r.Limits.Over(config.Limits).Over(supervisor.DefaultLimits()),
		Tier:   p.Tier, Strict: p.Strict, Require: p.Require, Allow: p.Allow, EventOutputBytes: r.EventOutputBytes,
	}
	if out.EventOutputBytes < 0 {
		out.EventOutputBytes = keptOutput
	}
	if out.Grace == 0 {
		out.Grace = config.Grace
	}
	if r.Command == nil {
		tool := r.Tool
		out.Tool = &tool
	} else {
		out.Argv = r.Command.Argv
		out.Tool = &supervisor.Tool{ReadOnly: r.Tool.ReadOnly, Idempotent: r.Tool.Idempotent}
		if r.Command.Tool != nil {
			out.Source = r.Command.Tool.Spec().Source
		}
	}
	raw, err := json.Marshal(out)
	if err == nil && len(raw) > MaxBytes {
		err = fmt.Errorf("the call is %d bytes, over %d", len(raw), MaxBytes)
	}
	return raw, err
}

// profiles joins the asks of both, the request's last.
func profiles(config, request map[string][]budget.Ask) map[string][]budget.Ask {
	out := map[string][]budget.Ask{}
	for _, from := range []map[string][]budget.Ask{config, request} {
		for name, asks := range from {
			out[name] = append(out[name][:len(out[name]):len(out[name])], asks...)
		}
	}
	return out
}

// CommandTool makes the tool of a command from its CommandSpec.Source.
type CommandTool func(source json.RawMessage) (*supervisor.CommandTool, error)

// Read reads what Write has written, strictly: a field that this release does not know is
// an error, for it may have meant a bound.
func Read(raw []byte, command CommandTool) (r supervisor.Request, err error) {
	if len(raw) > MaxBytes {
		return r, fmt.Errorf("the request has %d bytes, over %d", len(raw), MaxBytes)
	}
	var in Request
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return r, fmt.Errorf("cannot read the request: %w", err)
	}
	if in.Tool == nil {
		return r, errors.New("the request names no tool")
	}
	r = supervisor.Request{
		Tool: *in.Tool, Name: in.Name, Arguments: in.Arguments, Meta: in.Meta, ID: in.ID, Place: in.Place, SHA256: in.SHA256, Env: in.Env,
		Timeout: in.Timeout, Timeouts: in.Timeouts, Profiles: in.Profiles, Stream: in.Stream, Grace: in.Grace, Limits: in.Limits,
		Sandbox:          &sandbox.Policy{Tier: in.Tier, Network: sandbox.NetworkNone, Strict: in.Strict, Require: in.Require, Allow: in.Allow},
		EventOutputBytes: in.EventOutputBytes,
	}
	if len(in.Argv) > 0 {
		r.Command = &supervisor.Command{Argv: in.Argv}
		if len(in.Source) > 0 {
			if command == nil {
				return r, errors.New("this worker makes no command tools")
			}
			if r.Command.Tool, err = command(in.Source); err != nil {
				return r, fmt.Errorf("cannot make the command's tool: %w", err)
			}
		}
	}
	if stays := Stays(r, supervisor.Config{}); len(stays) > 0 {
		return r, fmt.Errorf("a worker cannot do this yet: %q", stays)
	}
	return r, nil
}
