// Package pins keeps what the tools of MCP servers said of themselves when an
// operator first took them, or accepted them last. A server that says something
// else later may be another one, or may want a model to do something else: its
// tools are held back until they are accepted.
package pins

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/toolhost/toolhost/internal/atomicfile"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// Tool is what is pinned of one: all that a model or a human decides by.
type Tool struct {
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	ReadOnly     *bool           `json:"readOnlyHint,omitempty"`
	Destructive  *bool           `json:"destructiveHint,omitempty"`
	Idempotent   *bool           `json:"idempotentHint,omitempty"`
	OpenWorld    *bool           `json:"openWorldHint,omitempty"`
	// Exclusive: it says that it changes something, be it by a hint of false.
	Exclusive bool `json:"exclusive,omitempty"`
}

// Of is a tool as it says it is. Schemas mean the same in whatever order they
// are written.
func Of(d *pluginv1.ToolDescription) Tool {
	a := d.GetAnnotations()
	if a == nil {
		a = &pluginv1.Annotations{}
	}
	return Tool{
		d.GetTitle(), d.GetDescription(), ordered(d.GetInputSchema()), ordered(d.GetOutputSchema()),
		a.ReadOnly, a.Destructive, a.Idempotent, a.OpenWorld, d.GetConcurrency() == pluginv1.Concurrency_CONCURRENCY_EXCLUSIVE,
	}
}

// ordered has the keys of objects in order, and no spaces.
func ordered(schema []byte) json.RawMessage {
	if len(schema) == 0 {
		return nil
	}
	in := json.NewDecoder(bytes.NewReader(schema))
	in.UseNumber()
	var value any
	if in.Decode(&value) == nil {
		if raw, err := json.Marshal(value); err == nil {
			return raw
		}
	}
	raw, _ := json.Marshal(string(schema)) // compared as it is
	return raw
}

// Change is one part of a tool that is not as it was pinned.
type Change struct{ Part, Before, After string }

// Changes compares a tool with what was pinned of it.
func Changes(before, after Tool) (list []Change) {
	for _, part := range []Change{
		{"title", before.Title, after.Title},
		{"description", before.Description, after.Description},
		{"inputSchema", string(before.InputSchema), string(after.InputSchema)},
		{"outputSchema", string(before.OutputSchema), string(after.OutputSchema)},
		{"readOnlyHint", hint(before.ReadOnly), hint(after.ReadOnly)},
		{"destructiveHint", hint(before.Destructive), hint(after.Destructive)},
		{"idempotentHint", hint(before.Idempotent), hint(after.Idempotent)},
		{"openWorldHint", hint(before.OpenWorld), hint(after.OpenWorld)},
		{"exclusive", fmt.Sprint(before.Exclusive), fmt.Sprint(after.Exclusive)},
	} {
		if part.Before != part.After {
			list = append(list, part)
		}
	}
	return list
}

func hint(h *bool) string {
	if h == nil {
		return ""
	}
	return fmt.Sprint(*h)
}

// Server is what is pinned of one, by the names that it gives its tools.
type Server struct {
	SchemaVersion int `json:"schemaVersion"`
	// Config is the file that the server stands in, and Name its entry.
	Config string          `json:"config"`
	Name   string          `json:"name"`
	Tools  map[string]Tool `json:"tools"`
}

const (
	schemaVersion = 1
	maxFileBytes  = 64 << 20
)

// File is where the pins of one server are kept.
type File struct{ path, config, name string }

// In is the file of an entry of a configuration, below a state folder.
func In(state, config, name string) File {
	if whole, err := filepath.Abs(config); err == nil {
		config = whole
	}
	sum := sha256.Sum256([]byte(config))
	return File{filepath.Join(state, "pins", fmt.Sprintf("%s-%x.lock", name, sum[:4])), config, name}
}

// Path is the file's.
func (f File) Path() string { return f.path }

// Read returns what is pinned; fs.ErrNotExist if nothing is yet.
func (f File) Read() (map[string]Tool, error) {
	in, err := os.Open(f.path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	raw, err := io.ReadAll(io.LimitReader(in, maxFileBytes+1))
	if err != nil {
		return nil, err
	}
	var s Server
	switch err := json.Unmarshal(raw, &s); {
	case len(raw) > maxFileBytes:
		return nil, fmt.Errorf("%s has more than %d bytes", f.path, maxFileBytes)
	case err != nil:
		return nil, fmt.Errorf("%s cannot be read: %w", f.path, err)
	case s.SchemaVersion != schemaVersion:
		return nil, fmt.Errorf("%s is of version %d, and this toolhost reads %d", f.path, s.SchemaVersion, schemaVersion)
	}
	for name, tool := range s.Tools { // the file is written for people to read
		tool.InputSchema, tool.OutputSchema = ordered(tool.InputSchema), ordered(tool.OutputSchema)
		s.Tools[name] = tool
	}
	return s.Tools, nil
}

// First pins the tools if nothing is pinned.
func (f File) First(tools map[string]Tool) error {
	if _, err := os.Lstat(f.path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := f.put(tools, atomicfile.Options{New: true})
	if errors.Is(err, fs.ErrExist) { // another process was first
		return nil
	}
	return err
}

// Accept pins the tools in place of others.
func (f File) Accept(tools map[string]Tool) error { return f.put(tools, atomicfile.Options{}) }

func (f File) put(tools map[string]Tool, o atomicfile.Options) error {
	raw, err := json.MarshalIndent(Server{schemaVersion, f.config, f.name, tools}, "", "  ")
	if err != nil {
		return fmt.Errorf("bug: cannot write pins: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(f.path, append(raw, '\n'), o)
}
