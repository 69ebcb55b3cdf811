// Package describe holds what plugin binaries say of themselves: read and checked,
// remembered, and asked for once by all who want it.
package describe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"

	"google.golang.org/protobuf/proto"

	"github.com/toolhost/toolhost/budget/memory"
	"github.com/toolhost/toolhost/internal/text"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/plugin/schema"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
)

// Described is a description with its schemas ready for use.
type Described struct {
	Version  string
	Warnings []string
	Server   *pluginv1.Server // what an adapter has behind it
	tools    []*Tool
	bytes    int       // that it takes in memory, mostly for the schemas
	At       time.Time // when it was asked
}

// Tool is a description with its input schema ready for use.
type Tool struct {
	*pluginv1.ToolDescription
	schema *schema.Schema
}

// maxDescriptions and maxKnownBytes bound the cache, where the newest is kept
// whatever it takes, the others what is taken of one binary.
const (
	maxDescriptions = 256
	maxKnownBytes   = 64 << 20
	maxTools        = 1024
	maxNameBytes    = 128
	maxSchemasBytes = 128 << 20
	schemasPart     = 7 // of a small host's memory at most
)

// Cache remembers what binaries said, by hash and arguments.
type Cache struct {
	reading chan struct{} // held while one is made: schemas take memory before it is known how much

	mu    sync.Mutex
	seen  map[string]*Described
	bytes int // of those
}

// NewCache makes an empty one.
func NewCache() *Cache {
	return &Cache{reading: make(chan struct{}, 1), seen: map[string]*Described{}}
}

// Read makes a description of what a binary has said. Where ctx ends before it begins to, it
// refuses as cancelled.
func (d *Cache) Read(ctx context.Context, response *pluginv1.DescribeResponse) (*Described, error) {
	select {
	case d.reading <- struct{}{}:
		defer func() { <-d.reading }()
	case <-ctx.Done():
		return nil, gaveUp(ctx)
	}
	return newDescribed(response)
}

// Get is nil for what is not known.
func (d *Cache) Get(key string) *Described {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seen[key]
}

// Put remembers a description.
func (d *Cache) Put(key string, value *Described) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.seen) >= maxDescriptions || d.bytes+value.bytes > maxKnownBytes {
		clear(d.seen)
		d.bytes = 0
	}
	if former := d.seen[key]; former != nil {
		d.bytes -= former.bytes
	}
	d.seen[key] = value
	d.bytes += value.bytes
}

func newDescribed(response *pluginv1.DescribeResponse) (*Described, error) {
	leftOut := fit(response)
	list := response.GetTools()
	server := response.GetServer()
	offers := len(server.GetPrompts()) + len(server.GetResources()) + len(server.GetTemplates())
	if len(list) == 0 && offers == 0 || len(list) > maxTools || offers > 3*maxTools {
		return nil, fmt.Errorf("the binary describes %d tools, want 1 to %d", len(list), maxTools)
	}
	d := &Described{Version: response.GetVersion(), Warnings: append(leftOut, response.GetWarnings()...), Server: server}
	names, most := map[string]bool{}, memory.Within(maxSchemasBytes, schemasPart)
	for _, description := range list {
		name := description.GetName()
		switch {
		case names[name]:
			return nil, fmt.Errorf("the binary describes a tool %q twice", name)
		case !isToolName(name):
			return nil, fmt.Errorf("the binary describes a tool %.200q: a name has 1 to %d bytes, all of them printable", name, maxNameBytes)
		}
		names[name] = true
		tool, err := NewTool(description)
		if err != nil {
			return nil, err
		}
		d.tools, d.Warnings = append(d.tools, tool), append(d.Warnings, mendHints(description)...)
		d.bytes += tool.schema.Bytes()
		if int64(d.bytes) > most {
			return nil, fmt.Errorf("the schemas of the binary's tools take more than %d MiB of memory", most>>20)
		}
	}
	d.Warnings = boundedWarnings(d.Warnings)
	d.bytes += proto.Size(response)
	return d, nil
}

func isToolName(name string) bool {
	return name != "" && len(name) <= maxNameBytes && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

// maxWarnings bounds those of a binary.
const maxWarnings = 100

func boundedWarnings(list []string) (kept []string) {
	for _, w := range list[:min(len(list), maxWarnings)] {
		kept = append(kept, outcome.Shorten(text.FirstLine(w)))
	}
	return kept
}

// NewTool checks a description and its schemas.
func NewTool(description *pluginv1.ToolDescription) (*Tool, error) {
	input, err := schema.ParseObject(description.GetInputSchema())
	if err != nil {
		return nil, fmt.Errorf("input schema of tool %q: %w", description.GetName(), err)
	}
	if output := description.GetOutputSchema(); len(output) > 0 {
		if _, err := schema.Parse(output); err != nil {
			return nil, fmt.Errorf("output schema of tool %q: %w", description.GetName(), err)
		}
	}
	return &Tool{ToolDescription: description, schema: input}, nil
}

// List are the descriptions of all tools.
func (d *Described) List() (out []*pluginv1.ToolDescription) {
	for _, tool := range d.tools {
		out = append(out, tool.ToolDescription)
	}
	return out
}

func (d *Described) names() string {
	var names []string
	for _, tool := range d.tools {
		names = append(names, tool.ToolDescription.GetName())
	}
	return outcome.Shorten(strings.Join(names, ", "))
}

// Find picks a tool by name, or the only one.
func (d *Described) Find(name string) (*Tool, error) {
	if name == "" && len(d.tools) == 1 {
		return d.tools[0], nil
	}
	for _, tool := range d.tools {
		if tool.ToolDescription.GetName() == name {
			return tool, nil
		}
	}
	if name == "" {
		return nil, fmt.Errorf("the binary has several tools: name one of %s", d.names())
	}
	return nil, fmt.Errorf("the binary has no tool %q: it has %s", name, d.names())
}

// Validate names the path and the rule that arguments break.
func (t *Tool) Validate(arguments []byte) error {
	value, err := schema.DecodeAny(arguments)
	if err != nil {
		return fmt.Errorf("arguments of %s: %w", t.GetName(), err)
	}
	if _, ok := value.(map[string]any); !ok {
		return errors.New("the arguments must be a JSON object")
	}
	if err := t.schema.Validate(value); err != nil {
		return fmt.Errorf("arguments of %s: %w", t.GetName(), err)
	}
	return nil
}
