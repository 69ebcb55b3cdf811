package toolrun

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/docker/go-units"

	"github.com/toolhost/toolhost/internal/plugin/host"
	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/internal/tools/callargs"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor"
)

// Description is what a binary says of itself, as JSON.
type Description struct {
	Plugin  string `json:"plugin"`
	SHA256  string `json:"sha256"`
	Version string `json:"version"`
	// PackVersion is what the manifest says of the whole pack that the binary is
	// in; empty without a pack, or where that says nothing.
	PackVersion string `json:"packVersion,omitempty"`
	// ManifestSHA256 is the hash to pin that pack by; empty without one.
	ManifestSHA256 string `json:"manifestSha256,omitempty"`
	Tools          []Tool `json:"tools"`
	// Warnings are of what a host cuts, or leaves out.
	Warnings []string `json:"warnings,omitempty"`
}

// Tool is one of its tools.
type Tool struct {
	Name            string          `json:"name"`
	Title           string          `json:"title,omitempty"`
	Description     string          `json:"description,omitempty"`
	InputSchema     json.RawMessage `json:"inputSchema"`
	OutputSchema    json.RawMessage `json:"outputSchema,omitempty"`
	ReadOnly        *bool           `json:"readOnly,omitempty"`
	Destructive     *bool           `json:"destructive,omitempty"`
	Idempotent      *bool           `json:"idempotent,omitempty"`
	OpenWorld       *bool           `json:"openWorld,omitempty"`
	Exclusive       bool            `json:"exclusive,omitempty"`
	TimeoutMs       int64           `json:"timeoutMs,omitempty"`
	SoftBudgetMs    int64           `json:"softBudgetMs,omitempty"`
	TimeoutArgument string          `json:"timeoutArgument,omitempty"`
	Wish            Wish            `json:"wish,omitzero"`
}

// Wish is what a tool would like to be granted.
type Wish struct {
	Read        []string `json:"read,omitempty"`
	Write       []string `json:"write,omitempty"`
	Network     bool     `json:"network,omitempty"`
	Reach       []string `json:"reach,omitempty"`
	MemoryBytes int64    `json:"memoryBytes,omitempty"`
	Pids        int64    `json:"pids,omitempty"`
}

// NewDescription makes one of the binary at path.
func NewDescription(path string, d *supervisor.Description) Description {
	out := Description{Plugin: path, SHA256: d.SHA256, Version: d.Version, Tools: []Tool{}, Warnings: d.Warnings}
	for _, t := range d.Tools {
		a, wish := t.GetAnnotations(), t.GetWish()
		tool := Tool{
			Name: t.GetName(), Title: t.GetTitle(), Description: t.GetDescription(),
			InputSchema: t.GetInputSchema(), OutputSchema: t.GetOutputSchema(),
			Exclusive: t.GetConcurrency() == pluginv1.Concurrency_CONCURRENCY_EXCLUSIVE,
			TimeoutMs: t.GetTimeouts().GetTimeoutMs(), SoftBudgetMs: t.GetTimeouts().GetSoftBudgetMs(), TimeoutArgument: t.GetTimeoutArgument(),
			Wish: Wish{Read: wish.GetRead(), Write: wish.GetWrite(), Network: wish.GetNetwork(), Reach: wish.GetReach(), MemoryBytes: wish.GetMemoryBytes(), Pids: wish.GetPids()},
		}
		if a != nil {
			tool.ReadOnly, tool.Destructive, tool.Idempotent, tool.OpenWorld = a.ReadOnly, a.Destructive, a.Idempotent, a.OpenWorld
		}
		out.Tools = append(out.Tools, tool)
	}
	return out
}

// WriteJSON writes it as JSON.
func (d Description) WriteJSON(w io.Writer) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	return out.Encode(d)
}

// WriteText writes it for people.
func (d Description) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  ", terminal.OneLine(d.Plugin))
	if d.PackVersion != "" {
		fmt.Fprintf(&b, "pack version %s  ", terminal.OneLine(d.PackVersion))
	}
	fmt.Fprintf(&b, "version %s  sha256 %.12s\n", orNone(d.Version), d.SHA256)
	if d.ManifestSHA256 != "" {
		fmt.Fprintf(&b, "manifest sha256 %s, to pin the pack by\n", d.ManifestSHA256)
	}
	WriteWarnings(&b, d.Warnings)
	for _, t := range d.Tools {
		t.text(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteWarnings writes each on a line.
func WriteWarnings(w io.Writer, warnings []string) {
	for _, warning := range warnings {
		fmt.Fprintf(w, "warning: %s\n", terminal.OneLine(warning))
	}
}

func (t *Tool) text(b *strings.Builder) {
	fmt.Fprintf(b, "\n%s", terminal.OneLine(t.Name))
	if t.Title != "" {
		fmt.Fprintf(b, "  (%s)", terminal.OneLine(t.Title))
	}
	b.WriteString("\n")
	for line := range strings.Lines(t.Description) {
		fmt.Fprintf(b, "  %s\n", terminal.OneLine(strings.TrimRight(line, "\n")))
	}
	schemaText(b, "arguments", t.InputSchema)
	schemaText(b, "result", t.OutputSchema)
	fmt.Fprintf(b, "  claims: %s\n", orNone(strings.Join(t.claims(), ", ")))
	if hints := t.hints(); len(hints) > 0 {
		fmt.Fprintf(b, "  hints: %s\n", strings.Join(hints, ", "))
	}
	if wishes := t.Wish.list(); len(wishes) > 0 {
		fmt.Fprintf(b, "  wishes for: %s\n", terminal.OneLine(strings.Join(wishes, ", ")))
	}
}

// schemaText lists a schema's properties.
func schemaText(b *strings.Builder, what string, schema json.RawMessage) {
	var s struct {
		Required []string `json:"required"`
	}
	properties := callargs.Properties(schema)
	if json.Unmarshal(schema, &s) != nil || len(properties) == 0 {
		fmt.Fprintf(b, "  %s: %s\n", what, unnamed(schema))
		return
	}
	fmt.Fprintf(b, "  %s:\n", what)
	table := tabwriter.NewWriter(b, 0, 4, 2, ' ', 0)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		need := "optional"
		if slices.Contains(s.Required, name) {
			need = "required"
		}
		fmt.Fprintf(table, "    %s\t%s\t%s\t%s\n", terminal.OneLine(name), terminal.OneLine(orAny(properties[name].Types())), need, terminal.OneLine(properties[name].Description))
	}
	_ = table.Flush()
}

// unnamed says what a schema that names no properties takes.
func unnamed(schema json.RawMessage) string {
	var whole callargs.Property
	var object struct {
		Additional json.RawMessage `json:"additionalProperties"`
	}
	if len(schema) == 0 || json.Unmarshal(schema, &whole) != nil {
		return "none"
	}
	_ = json.Unmarshal(schema, &object) // true and false have no such keyword
	switch types := whole.Types(); {
	case !slices.Contains(types, "object"):
		return terminal.OneLine(orAny(types))
	case len(object.Additional) > 0 && string(object.Additional) != "false":
		return "any names"
	}
	return "none"
}

func orAny(types []string) string {
	if len(types) == 0 {
		return "any"
	}
	return strings.Join(types, " or ")
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return terminal.OneLine(s)
}

func (t *Tool) claims() []string {
	return host.Claims(&pluginv1.Annotations{ReadOnly: t.ReadOnly, Idempotent: t.Idempotent, Destructive: t.Destructive, OpenWorld: t.OpenWorld}, t.Exclusive)
}

func (t *Tool) hints() (list []string) {
	for _, h := range []struct {
		name string
		ms   int64
	}{{"timeout", t.TimeoutMs}, {"soft budget", t.SoftBudgetMs}} {
		if h.ms > 0 {
			list = append(list, h.name+" "+(time.Duration(h.ms)*time.Millisecond).String())
		}
	}
	if t.TimeoutArgument != "" {
		list = append(list, "timeout argument "+terminal.OneLine(t.TimeoutArgument))
	}
	return list
}

func (w *Wish) list() (list []string) {
	for _, path := range w.Read {
		list = append(list, "read "+path)
	}
	for _, path := range w.Write {
		list = append(list, "write "+path)
	}
	if w.Network {
		list = append(list, "network")
	}
	for _, to := range w.Reach {
		list = append(list, "reach "+to)
	}
	if w.MemoryBytes > 0 {
		list = append(list, "memory "+units.BytesSize(float64(w.MemoryBytes)))
	}
	if w.Pids > 0 {
		list = append(list, fmt.Sprintf("%d processes", w.Pids))
	}
	return list
}
