package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/plugin/schema"
)

// Tool describes a tool to hosts and models. All fields but Name are optional.
// Claims (ReadOnly and so on) and hints do not bind the host: its configuration
// decides, and a claim can only make it stricter.
type Tool struct {
	// Name is 1 to 64 of A-Z, a-z, 0-9, _ and -, the form that every model API
	// takes, and unique in a binary.
	Name string
	// Title is for people, Description for the model.
	Title, Description string
	// ReadOnly claims that a call changes nothing outside of its process, and
	// Idempotent that a second call with the same arguments changes nothing more.
	// If the operator confirms it, either makes a failed call retryable. Destructive
	// claims that a call may destroy something, and Additive that it may change but not
	// destroy something.
	ReadOnly, Idempotent, Destructive, Additive bool
	// OpenWorld claims that a call deals with things outside of this machine, such as
	// the web, and ClosedWorld that it does not. MCP clients assume Destructive and
	// OpenWorld for tools without a claim.
	OpenWorld, ClosedWorld bool
	// Exclusive is set if no other call of the same turn may run at the same time.
	Exclusive bool
	// Timeout and SoftBudget are hints, used if nothing is configured; zero means
	// no hint.
	Timeout, SoftBudget time.Duration
	// TimeoutArgument names the integer argument, in milliseconds, by which
	// the model requests a timeout; empty means none.
	TimeoutArgument string
	// Wish is what the tool would like its sandbox to grant.
	Wish Wish
	// Extra is a JSON object with other fields of an adapter's tool in its server's
	// protocol.
	Extra json.RawMessage
}

// Wish lists grants that a tool would like to have. toolhost explain shows them
// besides the actual grants.
type Wish struct {
	// Read and Write are paths.
	Read, Write []string
	// Network asks for all of the host's network, Reach for names and addresses in the
	// form of network grants: api.example.com:443.
	Network bool
	Reach   []string
	// MemoryBytes and Pids are sufficient limits; zero means unknown.
	MemoryBytes, Pids int64
}

// Registered is a tool that Serve can serve, made by NewTool or NewRawTool.
type Registered struct {
	name     string
	describe func() *pluginv1.ToolDescription // made when it is first asked for: a host that knows the tool only calls it
	run      func(ctx context.Context, arguments []byte, out *Output) (structured []byte, err error)
}

// Name returns the tool's name.
func (r Registered) Name() string { return r.name }

// Describe returns the description that hosts get.
func (r Registered) Describe() *pluginv1.ToolDescription { return r.describe() }

// Run runs the tool in this process, as Serve would for a host: it decodes the
// arguments, calls the function and returns its result as JSON (nil where the
// result type is None). It fails for a result over 4 MiB, the most that a host
// accepts in one message.
func (r Registered) Run(ctx context.Context, arguments json.RawMessage, out *Output) (json.RawMessage, error) {
	result, err := r.run(ctx, arguments, out)
	if err == nil && len(result) > maxResultBytes {
		return nil, fmt.Errorf("the result of %d bytes is more than the %d that one message may have: return less, and send the rest as content in several parts, or write it to a file and send a Link", len(result), maxResultBytes)
	}
	return result, err
}

// maxResultBytes leaves room for what is around a result in its message.
const maxResultBytes = maxMessageBytes - 1<<10

// None is the result type of a tool that only streams content.
type None struct{}

const (
	maxNameBytes   = 64
	nameCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
)

// NewTool returns a tool with a description and the function that does the work. In
// must be a struct or a map: it is the arguments object. If the host reuses the
// process, the function may be called by several goroutines at once. NewTool panics
// if the tool could never work: for a bad name, or types without a JSON Schema.
//
// The schemas are made from the types by the rules of encoding/json. A type that
// implements encoding.TextUnmarshaler or TextMarshaler is a string, and one that
// implements json.Unmarshaler or Marshaler may be anything, except for In itself,
// which is an object of its fields. NewRawTool takes handwritten schemas.
func NewTool[In, Out any](t Tool, do func(context.Context, In, *Output) (Out, error)) Registered {
	if err := t.check(); err != nil {
		panic("plugin: " + err.Error())
	}
	in, out := schemaOf[In](t.Name, input), func() []byte { return nil }
	none := reflect.TypeFor[Out]() == reflect.TypeFor[None]()
	if !none {
		out = schemaOf[Out](t.Name, output)
	}
	describe := sync.OnceValue(func() *pluginv1.ToolDescription { return t.describe(in(), out()) })
	return Registered{name: t.Name, describe: describe, run: func(ctx context.Context, arguments []byte, out *Output) ([]byte, error) {
		var in In
		if err := decode(arguments, &in); err != nil {
			return nil, err
		}
		result, err := do(ctx, in, out)
		if err != nil || none {
			return nil, err
		}
		return encode(result)
	}}
}

func (t Tool) check() error {
	if t.Name == "" || len(t.Name) > maxNameBytes || strings.Trim(t.Name, nameCharacters) != "" {
		return fmt.Errorf("tool name %q: want 1 to 64 of A-Z, a-z, 0-9, _ and -", t.Name)
	}
	for _, text := range slices.Concat([]string{t.Title, t.Description, t.TimeoutArgument}, t.Wish.Read, t.Wish.Write, t.Wish.Reach) {
		if !utf8.ValidString(text) {
			return fmt.Errorf("tool %q: %q is not UTF-8", t.Name, text)
		}
	}
	switch {
	case t.Destructive && t.Additive:
		return fmt.Errorf("tool %q: Destructive and Additive contradict one another: leave one out", t.Name)
	case t.OpenWorld && t.ClosedWorld:
		return fmt.Errorf("tool %q: OpenWorld and ClosedWorld contradict one another: leave one out", t.Name)
	}
	return nil
}

// InvalidArgumentsError means that the arguments do not decode into the tool's
// type. The tool did not run.
type InvalidArgumentsError struct{ Err error }

func (e *InvalidArgumentsError) Error() string { return "invalid arguments: " + e.Err.Error() }
func (e *InvalidArgumentsError) Unwrap() error { return e.Err }

func decode(arguments []byte, into any) error {
	if len(bytes.TrimSpace(arguments)) == 0 {
		arguments = []byte("{}")
	}
	if err := schema.Decode(arguments, into); err != nil {
		return &InvalidArgumentsError{err}
	}
	return nil
}

// encode makes an object of a result that is a nil map, too: its schema, that of
// the whole result, says so.
func encode(result any) ([]byte, error) {
	raw, err := marshal(filled(result))
	if err != nil {
		return nil, fmt.Errorf("cannot encode the result: %w", err)
	}
	if bytes.Equal(raw, []byte("null")) && reflect.TypeOf(result) != nil && reflect.TypeOf(result).Kind() == reflect.Map {
		raw = []byte("{}")
	}
	return raw, nil
}

// schemaOf panics at once where a type has no schema, and writes it only when asked.
func schemaOf[T any](tool string, d direction) func() []byte {
	schema, err := infer(reflect.TypeFor[T](), d)
	if err != nil {
		panic(fmt.Sprintf("plugin: tool %q: no JSON Schema for its %s type %v: %v", tool, d.what, reflect.TypeFor[T](), err))
	}
	if d.what == input.what && schema.Type != "object" {
		panic(fmt.Sprintf("plugin: tool %q: argument type %v must be a struct or a map, without a text form of its own", tool, reflect.TypeFor[T]()))
	}
	return func() []byte {
		raw, err := json.Marshal(schema)
		if err != nil {
			panic(fmt.Sprintf("plugin: tool %q: schema of its %s type: %v", tool, d.what, err))
		}
		return raw
	}
}

func (t Tool) describe(in, out []byte) *pluginv1.ToolDescription {
	return &pluginv1.ToolDescription{
		Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: in, OutputSchema: out,
		Annotations: &pluginv1.Annotations{
			ReadOnly: claim(t.ReadOnly, false), Destructive: claim(t.Destructive, t.Additive), Idempotent: claim(t.Idempotent, false),
			OpenWorld: claim(t.OpenWorld, t.ClosedWorld),
		},
		Concurrency:     concurrency(t.Exclusive),
		Timeouts:        &pluginv1.TimeoutHints{TimeoutMs: t.Timeout.Milliseconds(), SoftBudgetMs: t.SoftBudget.Milliseconds()},
		TimeoutArgument: t.TimeoutArgument, Extra: t.Extra,
		Wish: &pluginv1.SandboxWish{
			Read: t.Wish.Read, Write: t.Wish.Write, Network: t.Wish.Network, Reach: t.Wish.Reach,
			MemoryBytes: t.Wish.MemoryBytes, Pids: t.Wish.Pids,
		},
	}
}

// claim is true or false where the tool says either, and absent otherwise.
func claim(yes, no bool) *bool {
	if yes || no {
		return &yes
	}
	return nil
}

func concurrency(exclusive bool) pluginv1.Concurrency {
	if exclusive {
		return pluginv1.Concurrency_CONCURRENCY_EXCLUSIVE
	}
	return pluginv1.Concurrency_CONCURRENCY_UNSPECIFIED
}
