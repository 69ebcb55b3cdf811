// Package pins keeps what the tools of MCP servers said of themselves when an
// operator first took them, or accepted them last, and so of their prompts,
// resource templates and instructions. A server that says something else later may be another one, or
// may want a model to do something else: that is held back until it is accepted.
package pins

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
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

	onlyTrue bool // it is from a file without hints of false
}

// Of is a tool as it says it is. Schemas mean the same in whatever order they
// are written.
func Of(d *pluginv1.ToolDescription) Tool {
	a := cmp.Or(d.GetAnnotations(), &pluginv1.Annotations{})
	return Tool{
		Title: d.GetTitle(), Description: d.GetDescription(), InputSchema: ordered(d.GetInputSchema()), OutputSchema: ordered(d.GetOutputSchema()),
		ReadOnly: a.ReadOnly, Destructive: a.Destructive, Idempotent: a.Idempotent, OpenWorld: a.OpenWorld,
		Exclusive: d.GetConcurrency() == pluginv1.Concurrency_CONCURRENCY_EXCLUSIVE,
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
	hint := func(h *bool) string {
		if h == nil || before.onlyTrue && !*h {
			return ""
		}
		return fmt.Sprint(*h)
	}
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

// Server is what is pinned of one, by the names that it gives its tools.
type Server struct {
	SchemaVersion int `json:"schemaVersion"`
	// Config is the file that the server stands in, and Name its entry.
	Config string          `json:"config"`
	Name   string          `json:"name"`
	Tools  map[string]Tool `json:"tools"`
	// Offers: its prompts and resource templates are among them, by KeyOfPrompt and
	// KeyOfTemplate. Files of before they were pinned have tools alone.
	Offers bool `json:"offers,omitempty"`
	// Instructions: its instructions are, too, by KeyOfInstructions, if it has any.
	Instructions bool `json:"instructions,omitempty"`
	// Hints: those of false are among them. Files of before do not tell them from absent ones.
	Hints bool `json:"hints,omitempty"`
}

// What the names of prompts, and the URIs of resource templates, stand behind, and the
// key of a server's instructions.
const (
	KeyOfPrompt       = "prompt "
	KeyOfTemplate     = "resource template "
	KeyOfInstructions = "instruction text"
)

// OfOffers is what a server says of its prompts and resource templates and to models, by
// their keys. The schema of a prompt is its arguments.
func OfOffers(o *pluginv1.Server) map[string]Tool {
	all := map[string]Tool{}
	if text := o.GetInstructions(); text != "" {
		key, one := OfInstructions(text)
		all[key] = one
	}
	for _, raw := range o.GetPrompts() {
		key, one := ofOffer(raw, KeyOfPrompt)
		all[key] = one
	}
	for _, raw := range o.GetTemplates() {
		key, one := ofOffer(raw, KeyOfTemplate)
		all[key] = one
	}
	return all
}

// OfPrompt and OfTemplate are those of one, as JSON.
func OfPrompt(raw []byte) (key string, t Tool)   { return ofOffer(raw, KeyOfPrompt) }
func OfTemplate(raw []byte) (key string, t Tool) { return ofOffer(raw, KeyOfTemplate) }

// OfInstructions are a server's.
func OfInstructions(text string) (key string, t Tool) {
	return KeyOfInstructions, Tool{Description: text}
}

func ofOffer(raw []byte, prefix string) (key string, t Tool) {
	var said struct {
		Name        string          `json:"name"`
		URITemplate string          `json:"uriTemplate"`
		Title       string          `json:"title"`
		Description string          `json:"description"`
		Arguments   json.RawMessage `json:"arguments"`
	}
	_ = json.Unmarshal(raw, &said) // of what cannot be read nothing is shown
	t = Tool{Title: said.Title, Description: said.Description, InputSchema: ordered(said.Arguments)}
	if prefix == KeyOfPrompt {
		return prefix + said.Name, t
	}
	t.Title = cmp.Or(t.Title, said.Name)
	return prefix + said.URITemplate, t
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
	s, err := f.server()
	return s.Tools, err
}

// Extend pins a server's prompts, resource templates and instructions beside the tools of
// a file that is from before they were.
func (f File) Extend(offers map[string]Tool) error {
	s, err := f.server()
	if err != nil || s.Offers && s.Instructions {
		return err
	}
	all := maps.Clone(s.Tools)
	if all == nil {
		all = map[string]Tool{}
	}
	for key, one := range offers {
		if !s.Offers || key == KeyOfInstructions {
			all[key] = one
		}
	}
	return f.put(all, s.Hints, atomicfile.Options{})
}

func (f File) server() (s Server, err error) {
	in, err := os.Open(f.path)
	if err != nil {
		return s, err
	}
	defer in.Close()
	raw, err := io.ReadAll(io.LimitReader(in, maxFileBytes+1))
	if err != nil {
		return s, err
	}
	switch err := json.Unmarshal(raw, &s); {
	case len(raw) > maxFileBytes:
		return Server{}, fmt.Errorf("%s has more than %d bytes", f.path, maxFileBytes)
	case err != nil:
		return Server{}, fmt.Errorf("%s cannot be read: %w", f.path, err)
	case s.SchemaVersion != schemaVersion:
		return Server{}, fmt.Errorf("%s is of version %d, and this toolhost reads %d", f.path, s.SchemaVersion, schemaVersion)
	}
	for name, tool := range s.Tools { // the file is written for people to read
		tool.InputSchema, tool.OutputSchema, tool.onlyTrue = ordered(tool.InputSchema), ordered(tool.OutputSchema), !s.Hints
		s.Tools[name] = tool
	}
	return s, nil
}

// First pins the tools if nothing is pinned.
func (f File) First(tools map[string]Tool) error {
	if _, err := os.Lstat(f.path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := f.put(tools, true, atomicfile.Options{New: true})
	if errors.Is(err, fs.ErrExist) { // another process was first
		return nil
	}
	return err
}

// Accept pins the tools in place of others. With one of a file without hints of false, the
// new file is as well: it would be held to have none.
func (f File) Accept(tools map[string]Tool) error {
	hints := true
	for _, tool := range tools {
		hints = hints && !tool.onlyTrue
	}
	return f.put(tools, hints, atomicfile.Options{})
}

func (f File) put(tools map[string]Tool, hints bool, o atomicfile.Options) error {
	raw, err := json.MarshalIndent(Server{schemaVersion, f.config, f.name, tools, true, true, hints}, "", "  ")
	if err != nil {
		return fmt.Errorf("bug: cannot write pins: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(f.path, append(raw, '\n'), o)
}
