package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor/internal/call"
	"github.com/toolhost/toolhost/supervisor/internal/describe"
	"github.com/toolhost/toolhost/supervisor/internal/kept"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
	"github.com/toolhost/toolhost/supervisor/internal/prepare"
)

// Description is a plugin binary's description of its tools.
type Description struct {
	Version string
	SHA256  string
	Tools   []*pluginv1.ToolDescription
	// Warnings come from the binary: what it leaves out, and why.
	Warnings []string
	// Server is the server behind an adapter; nil without one.
	Server *pluginv1.Server
	// Remembered is set if the description came from the cache; the binary was not run.
	Remembered bool
}

// Tool returns the named tool, or the only one if name is empty. It returns nil if the tool
// is unknown.
func (d *Description) Tool(name string) *pluginv1.ToolDescription {
	for _, tool := range d.Tools {
		if tool.GetName() == name || name == "" && len(d.Tools) == 1 {
			return tool
		}
	}
	return nil
}

// Names returns the names of the tools.
func (d *Description) Names() (names []string) {
	for _, tool := range d.Tools {
		names = append(names, tool.GetName())
	}
	return names
}

// Describe asks a plugin binary for its tools, in a new process under the message_route
// profile, with the request's tool, hash, limits, environment and sandbox, but nothing
// granted. Descriptions are cached by the binary's hash; Request.Anew bypasses the cache.
// With Keep.Asked, Describe waits for calls that use the kept process alone, as long as for
// a slot. If the description is nil, the result says why. The request's timeouts shorten a
// Describe, except those from an operator's file for an Adapter: its calls do not start the
// program behind it each time.
func (s *Supervisor) Describe(ctx context.Context, request Request) (*Description, *api.Result) {
	began := time.Now()
	d, found, err := s.findAndDescribe(ctx, request)
	if err == nil {
		return &Description{Version: d.Version, SHA256: found.SHA256, Tools: d.List(), Warnings: d.Warnings, Server: d.Server, Remembered: d.At.Before(began)}, nil
	}
	c := call.New(s.preparer.Bare(request), (&caller{s: s}).base())
	c.Refuse(err)
	return nil, c.Result()
}

// SHA256 returns the hash of a plugin binary, looked up as for a call.
func (s *Supervisor) SHA256(path string) (string, error) {
	found, err := s.binaries.Find(path)
	return found.SHA256, err
}

// Program returns the hash of the program that a call of the request would run; for an
// Adapter, of the server that it starts.
func (s *Supervisor) Program(request Request) (sha256 string, err error) {
	found, err := s.binaries.Program(request)
	return found.SHA256, err
}

func (s *Supervisor) findAndDescribe(ctx context.Context, request Request) (*describe.Described, prepare.Binary, error) {
	found, err := s.binaries.Find(request.Tool.Path)
	if err != nil {
		return nil, prepare.Binary{}, err
	}
	if err := found.Check(request.SHA256); err != nil {
		return nil, prepare.Binary{}, err
	}
	d, err := s.describe(ctx, request, found)
	return d, found, err
}

func (s *Supervisor) describe(ctx context.Context, request Request, found prepare.Binary) (*describe.Described, error) {
	key := describeKey(request, found)
	if known := s.described.Get(key); known != nil && !request.Anew {
		return known, nil
	}
	ask := func(ctx context.Context) (*describe.Described, error) {
		d, err := s.askDescribed(ctx, request)
		if err == nil {
			d.At = time.Now()
			s.described.Put(key, d)
		}
		return d, err
	}
	if request.Keep != nil && request.Keep.Asked { // it may only be busy, and is to be asked again
		return ask(ctx)
	}
	return s.describing.Do(ctx, flightKey(key, request), ask)
}

func (s *Supervisor) askDescribed(ctx context.Context, request Request) (*describe.Described, error) {
	response, result, err := s.askDescription(ctx, request)
	if err != nil {
		return nil, err
	}
	if e := response.GetError(); e != nil {
		status, reason, ok := outcome.Behind(e.GetKind())
		if !ok {
			status, reason = api.StatusToolError, api.ReasonServer
		}
		return nil, &outcome.Refusal{Status: status, Reason: reason, Err: errors.New(e.GetMessage()), Describing: result}
	}
	d, err := s.described.Read(ctx, response)
	if _, refused := errors.AsType[*outcome.Refusal](err); err != nil && !refused {
		return nil, &outcome.Refusal{Status: api.StatusProtocolError, Reason: api.ReasonDescribe, Err: err, Describing: result}
	}
	return d, err
}

// askDescription makes a supervised call whose work is a Describe.
func (s *Supervisor) askDescription(ctx context.Context, request Request) (*pluginv1.DescribeResponse, *api.Result, error) {
	profile, _ := budget.Standard(budget.MessageRoute)
	p, err := s.prepareDescribe(ctx, request, profile)
	c, run, err := s.admit(&caller{s: s, p: p}, err)
	if err != nil {
		p.Close()
		return nil, nil, err
	}
	run(ctx)
	r, response := c.Result(), c.Responded()
	if response == nil || !r.OK() {
		return nil, nil, &outcome.Refusal{Status: r.Status, Reason: r.Reason, Err: describeError(p, r), Describing: r}
	}
	p.Mask.Description(response)
	return response, r, nil
}

// prepareDescribe prepares a Describe, of a kept process if there is one to ask, else of a
// new one.
func (s *Supervisor) prepareDescribe(ctx context.Context, request Request, profile budget.Profile) (*prepare.Prepared, error) {
	own := s.describeRequest(request, profile)
	if keep := request.Keep; keep != nil && keep.Asked && !keep.Once {
		shared := *keep
		shared.Shared = true
		asKept := own
		asKept.Sandbox, asKept.Lock, asKept.Keep, asKept.Share = request.Sandbox, request.Lock, &shared, request.Share
		asKept.Timeouts = slices.Clone(own.Timeouts)
		for i := range asKept.Timeouts { // the adapter gives up first: calls that run there are not to end with this one
			asKept.Timeouts[i].Timeout *= 2
		}
		p, err := s.preparer.Prepare(ctx, asKept, profile, prepare.ForDescribe)
		if err == nil && s.kept.Lives(kept.KeyOf(p)) {
			return p, nil
		}
		p.Close()
	}
	return s.preparer.Prepare(ctx, own, profile, prepare.ForDescribe)
}

// describeRequest grants nothing, but to an adapter what its calls are granted.
func (s *Supervisor) describeRequest(request Request, profile budget.Profile) Request {
	asked := Request{
		Tool:   Tool{Path: request.Tool.Path, Label: request.Tool.Label, Args: request.Tool.Args, Adapter: request.Tool.Adapter},
		Limits: request.Limits, Env: request.Env, SHA256: request.SHA256, Sandbox: s.describePolicy(request),
		Grace: budget.NoGrace, Timeouts: s.describeTimeout(request, profile), Profiles: request.Profiles,
	}
	if request.Tool.Adapter {
		asked.Dir, asked.Sandbox, asked.Secrets, asked.Lease = request.Dir, withoutData(request.Sandbox), request.Secrets, request.Lease
		if keep := request.Keep; keep != nil && keep.Once && request.Lock.File == "" {
			asked.Keep = keep
		}
	}
	return asked
}

// withoutData gives the policy a workspace of the call's own: the tool's data may be in use.
func withoutData(policy *sandbox.Policy) *sandbox.Policy {
	if policy == nil {
		return nil
	}
	own := *policy
	own.Workspace = ""
	return &own
}

// describePolicy grants nothing: a tool needs no files to describe itself.
func (s *Supervisor) describePolicy(request Request) *sandbox.Policy {
	policy := s.config.Sandbox
	if request.Sandbox != nil {
		policy = *request.Sandbox
	}
	policy.Read, policy.Write, policy.Network = nil, nil, ""
	return &policy
}

// describeTimeout lets a Describe take no longer than the call that needs it.
func (s *Supervisor) describeTimeout(request Request, profile budget.Profile) []budget.Ask {
	configured := s.preparer.Operation(budget.MessageRoute, request).Timeout
	most := min(cmp.Or(request.Tool.DescribeTimeout, configured), max(profile.Max, configured))
	ofCall, asks := s.config.Profile, s.preparer.Asks(request)
	if request.Tool.Adapter {
		ofCall.Default, asks = most, slices.DeleteFunc(asks, ofWork)
	}
	call := budget.Resolve(ofCall, asks...)
	return []budget.Ask{{
		Layer: budget.LayerGlobal, Rank: budget.RankFlag,
		Timeout: min(call.Timeout, most), Detail: "the call's own timeout",
	}}
}

// ofWork reports whether an ask is an operator's file's, which bounds how long calls work.
func ofWork(a budget.Ask) bool {
	return a.Layer == budget.LayerGlobal && a.Rank < budget.RankEnvironment
}

// describeError is the reason in one line.
func describeError(p *prepare.Prepared, r *api.Result) error {
	what := string(r.Status)
	switch e := r.ToolError; {
	case r.Status == api.StatusOOM:
		what = fmt.Sprintf("it ran out of memory: its limit is %d bytes for all its processes", r.Limits.MemoryBytes)
	case r.Status == api.StatusPidsLimit:
		what = fmt.Sprintf("it ran out of processes: its limit is %d, threads included", r.Limits.Pids)
	case e != nil:
		what = e.Message
	case r.Status == api.StatusTimeout:
		what = "it has not answered within " + outcome.Seconds(r.Timing.ElapsedMs)
	}
	if said := lastWords(r.Output.Stderr); said != "" {
		what += "; its last words on stderr: " + outcome.Shorten(said)
	}
	return fmt.Errorf("%s cannot be described: %s", cmp.Or(p.Request.Tool.Label, p.Binary.Path), what)
}

// lastWords is the line of stderr that is likeliest to say why a program ended:
// the first of a Go panic, else the last, as of other languages' stack traces.
func lastWords(stderr api.StreamOutput) string {
	gap := ""
	if stderr.DroppedBytes > 0 {
		gap = "\n"
	}
	lines := strings.Split(strings.TrimSpace(stderr.Head+gap+stderr.Tail), "\n")
	for _, line := range lines {
		if strings.HasPrefix(line, "panic: ") {
			return line
		}
	}
	return lines[len(lines)-1]
}
