package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolhost/toolhost/budget"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/sandbox"
)

// Description is what a plugin binary says of itself.
type Description struct {
	Version string
	SHA256  string
	Tools   []*pluginv1.ToolDescription
}

// Describe asks a plugin binary what tools it has, in a process of its own
// under the message_route profile, with the request's tool, hash, limits,
// environment and sandbox, but nothing granted. Answers are remembered by the
// binary's hash. The result tells what happened where there is no description.
func (s *Supervisor) Describe(ctx context.Context, request Request) (*Description, *Result) {
	d, found, err := s.findAndDescribe(ctx, request)
	if err == nil {
		return &Description{Version: d.version, SHA256: found.sha256, Tools: d.list()}, nil
	}
	c := s.newCall(request)
	c.refuse(err)
	return nil, c.result
}

func (s *Supervisor) findAndDescribe(ctx context.Context, request Request) (*described, binary, error) {
	found, err := s.binaries.find(request.Tool.Path)
	if err != nil {
		return nil, binary{}, refuse(StatusStartFailed, "tool", err)
	}
	if want := request.SHA256; want != "" && !strings.EqualFold(want, found.sha256) {
		return nil, binary{}, refuse(StatusPolicyViolation, "sha256", wrongHash(found, want))
	}
	d, err := s.describe(ctx, request, found)
	return d, found, err
}

// described is a description with its schemas ready for use.
type described struct {
	version string
	tools   []*describedTool
}

type describedTool struct {
	description *pluginv1.ToolDescription
	schema      *jsonschema.Resolved
}

// maxDescriptions bounds the cache, maxTools a binary's list.
const (
	maxDescriptions = 256
	maxTools        = 1024
)

// descriptions remembers what binaries said, by hash and arguments.
type descriptions struct {
	mu   sync.Mutex
	seen map[string]*described
}

func newDescriptions() *descriptions { return &descriptions{seen: map[string]*described{}} }

func (d *descriptions) get(key string) *described {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seen[key]
}

func (d *descriptions) put(key string, value *described) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.seen) >= maxDescriptions {
		clear(d.seen)
	}
	d.seen[key] = value
}

func (s *Supervisor) describe(ctx context.Context, request Request, found binary) (*described, error) {
	key := found.sha256 + "\x00" + strings.Join(request.Tool.Args, "\x00")
	if known := s.described.get(key); known != nil {
		return known, nil
	}
	response, err := s.askDescription(ctx, request)
	if err != nil {
		return nil, err
	}
	d, err := newDescribed(response)
	if err != nil {
		return nil, refuse(StatusProtocolError, "describe", err)
	}
	s.described.put(key, d)
	return d, nil
}

// askDescription is a supervised call like any other, but for its work.
func (s *Supervisor) askDescription(ctx context.Context, request Request) (*pluginv1.DescribeResponse, error) {
	profile, _ := budget.ForOperation("DescribeTool")
	c := s.newCall(Request{
		Tool: Tool{Path: request.Tool.Path, Args: request.Tool.Args}, Limits: request.Limits,
		Env: request.Env, SHA256: request.SHA256, Sandbox: s.describePolicy(request), Grace: budget.NoGrace, Timeouts: s.describeTimeout(request, profile),
	})
	c.describes, c.profile = true, profile
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	if err := s.register(c); err != nil {
		return nil, err
	}
	c.run(ctx)
	if c.responded != nil && c.result.OK() {
		return c.responded, nil
	}
	return nil, &refusal{status: c.result.Status, reason: c.result.Reason, err: describeError(c), describing: c.result}
}

// describePolicy grants nothing: what a tool says of itself takes no files.
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
	call := budget.Resolve(s.config.Profile, s.asks(request)...)
	return []budget.Ask{{
		Layer: budget.LayerGlobal, Rank: budget.RankFlag,
		Timeout: min(call.Timeout, profile.Default), Detail: "the call's own timeout",
	}}
}

// describeError is the reason in one line.
func describeError(c *Call) error {
	what := string(c.result.Status)
	if e := c.result.ToolError; e != nil {
		what = e.Message
	}
	if stderr := firstLine(strings.TrimSpace(c.result.Output.Stderr.Head)); stderr != "" && c.result.ToolError == nil {
		what += ": " + stderr
	}
	return fmt.Errorf("%s cannot be described: %s", c.binary.path, what)
}

func newDescribed(response *pluginv1.DescribeResponse) (*described, error) {
	list := response.GetTools()
	if len(list) == 0 || len(list) > maxTools {
		return nil, fmt.Errorf("the binary describes %d tools, want 1 to %d", len(list), maxTools)
	}
	d := &described{version: response.GetVersion()}
	names := map[string]bool{}
	for _, description := range list {
		name := description.GetName()
		if name == "" || names[name] {
			return nil, fmt.Errorf("the binary describes a tool %q twice, or without a name", name)
		}
		names[name] = true
		tool, err := newDescribedTool(description)
		if err != nil {
			return nil, fmt.Errorf("input schema of tool %q: %w", name, err)
		}
		d.tools = append(d.tools, tool)
	}
	return d, nil
}

func newDescribedTool(description *pluginv1.ToolDescription) (*describedTool, error) {
	if err := checkSchema(description.GetInputSchema()); err != nil {
		return nil, err
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(description.GetInputSchema(), &schema); err != nil {
		return nil, err
	}
	resolved, err := schema.Resolve(&jsonschema.ResolveOptions{})
	if err != nil {
		return nil, err
	}
	return &describedTool{description: description, schema: resolved}, nil
}

func (d *described) list() (out []*pluginv1.ToolDescription) {
	for _, tool := range d.tools {
		out = append(out, tool.description)
	}
	return out
}

func (d *described) names() string {
	var names []string
	for _, tool := range d.tools {
		names = append(names, tool.description.GetName())
	}
	return strings.Join(names, ", ")
}

// find picks a tool by name, or the only one.
func (d *described) find(name string) (*describedTool, error) {
	if name == "" && len(d.tools) == 1 {
		return d.tools[0], nil
	}
	for _, tool := range d.tools {
		if tool.description.GetName() == name {
			return tool, nil
		}
	}
	if name == "" {
		return nil, fmt.Errorf("the binary has several tools: name one of %s", d.names())
	}
	return nil, fmt.Errorf("the binary has no tool %q: it has %s", name, d.names())
}

// validate names the path and the rule that arguments break.
func (t *describedTool) validate(arguments []byte) error {
	var value any
	if err := json.Unmarshal(arguments, &value); err != nil {
		return fmt.Errorf("the arguments are no valid JSON: %w", err)
	}
	if _, ok := value.(map[string]any); !ok {
		return fmt.Errorf("the arguments must be a JSON object")
	}
	if err := t.schema.Validate(value); err != nil {
		return fmt.Errorf("arguments of %s: %w", t.description.GetName(), err)
	}
	return nil
}

func milliseconds(ms int64) time.Duration {
	if ms > int64(budget.Infinite/time.Millisecond) {
		return budget.Infinite
	}
	return time.Duration(ms) * time.Millisecond
}
