package supervisor

import (
	"context"
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

// described is a description with its schemas ready for use.
type described struct {
	version  string
	tools    []*describedTool
	warnings []string
	bytes    int // that it takes in memory, mostly for the schemas
	at       time.Time
}

type describedTool struct {
	description *pluginv1.ToolDescription
	schema      *schema.Schema
}

// maxDescriptions and maxKnownBytes bound the cache, where the newest is kept
// whatever it takes, the others what is taken of one binary.
const (
	maxDescriptions = 256
	maxKnownBytes   = 64 << 20
	maxTools        = 1024
	maxNameBytes    = 128
	maxSchemasBytes = 128 << 20
)

// descriptions remembers what binaries said, by hash and arguments.
type descriptions struct {
	reading chan struct{} // held while one is made: schemas take memory before it is known how much

	mu    sync.Mutex
	seen  map[string]*described
	bytes int // of those
}

func newDescriptions() *descriptions {
	return &descriptions{reading: make(chan struct{}, 1), seen: map[string]*described{}}
}

// read makes a description of what a binary has said.
func (d *descriptions) read(ctx context.Context, response *pluginv1.DescribeResponse) (*described, error) {
	select {
	case d.reading <- struct{}{}:
		defer func() { <-d.reading }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return newDescribed(response)
}

func (d *descriptions) get(key string) *described {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seen[key]
}

func (d *descriptions) put(key string, value *described) {
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

func newDescribed(response *pluginv1.DescribeResponse) (*described, error) {
	list := response.GetTools()
	if len(list) == 0 || len(list) > maxTools {
		return nil, fmt.Errorf("the binary describes %d tools, want 1 to %d", len(list), maxTools)
	}
	d := &described{version: response.GetVersion(), warnings: boundedWarnings(response.GetWarnings())}
	names, most := map[string]bool{}, memory.Within(maxSchemasBytes, memoryParts)
	for _, description := range list {
		name := description.GetName()
		switch {
		case names[name]:
			return nil, fmt.Errorf("the binary describes a tool %q twice", name)
		case !isToolName(name):
			return nil, fmt.Errorf("the binary describes a tool %.200q: a name has 1 to %d bytes, all of them printable", name, maxNameBytes)
		}
		names[name] = true
		tool, err := newDescribedTool(description)
		if err != nil {
			return nil, err
		}
		d.tools = append(d.tools, tool)
		d.bytes += tool.schema.Bytes()
		if int64(d.bytes) > most {
			return nil, fmt.Errorf("the schemas of the binary's tools take more than %d MiB of memory", most>>20)
		}
	}
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

func newDescribedTool(description *pluginv1.ToolDescription) (*describedTool, error) {
	input, err := schema.ParseObject(description.GetInputSchema())
	if err != nil {
		return nil, fmt.Errorf("input schema of tool %q: %w", description.GetName(), err)
	}
	if output := description.GetOutputSchema(); len(output) > 0 {
		if _, err := schema.Parse(output); err != nil {
			return nil, fmt.Errorf("output schema of tool %q: %w", description.GetName(), err)
		}
	}
	return &describedTool{description: description, schema: input}, nil
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
	return outcome.Shorten(strings.Join(names, ", "))
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
