package format

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/text"
)

const (
	// maxTextBytes is of one result, before the note about what is cut.
	maxTextBytes = 256 << 10
	// maxBlockBytes is of all blocks of one result, each costing blockBytes more
	// than its data: what Anthropic takes of one image, 5 MB in base64.
	maxBlockBytes = 3_750_000
	blockBytes    = 64
	noOutput      = "[no output]"
)

// show makes a format's block of content, or nil where the format has none.
type show func(api.Content) any

// render returns a result as a model reads it: message, blank line, content, and the
// tool's error if the message does not quote all of it. It is never empty.
func render(r *api.Result, as show) []part {
	w := &writer{show: as, blockBytes: maxBlockBytes}
	w.lead(r)
	shown := w.content(r)
	if !r.OK() || !shown {
		shown = w.streams(r.Output, shown) || shown
	}
	if said := unsaid(r); said != "" {
		w.text("[error]\n" + said)
	}
	if !shown && r.OK() && r.Message == "" {
		w.text(noOutput)
	}
	if note := Note(r); note != "" {
		w.parts, w.blankLine = append(w.parts, part{}), false // it is no text of the tool's
		w.text(note)
	}
	return bound(w.parts, w.gaps, maxTextBytes)
}

// plain is a result as text alone.
func plain(r *api.Result) string {
	parts := render(r, func(api.Content) any { return nil })
	var text []byte
	for _, p := range parts {
		text = append(onNewLine(text), p.text...)
	}
	return string(text)
}

// Note returns the note with a result's warnings that follows the content, or "" if all
// warnings are for operators.
func Note(r *api.Result) string {
	list := slices.DeleteFunc(slices.Clone(r.Warnings), func(one string) bool {
		return slices.Contains(r.Timing.SettingsWarnings, one)
	})
	if len(list) == 0 {
		return ""
	}
	return "[NOTE] " + clean(strings.Join(list, "; "))
}

// blocks are parts as Anthropic and MCP write them.
func blocks(parts []part) []any {
	out := make([]any, 0, len(parts))
	for _, p := range parts {
		switch {
		case p.block != nil:
			out = append(out, p.block)
		case len(bytes.TrimSpace(p.text)) > 0: // the APIs refuse blank text
			out = append(out, textBlock{"text", string(p.text)})
		}
	}
	return out
}

// writer gathers parts; texts that follow each other become one.
type writer struct {
	show       show
	blockBytes int // left
	parts      []part
	blankLine  bool // belongs before the next text
	size       int  // of all texts
	gaps       []gap
}

// text adds s on a line of its own, unless it is blank.
func (w *writer) text(s string) bool {
	if s = clean(s); strings.TrimSpace(s) == "" {
		return false
	}
	if len(w.parts) == 0 || w.parts[len(w.parts)-1].block != nil {
		w.parts = append(w.parts, part{})
	}
	last := &w.parts[len(w.parts)-1]
	before := len(last.text)
	last.text = onNewLine(last.text)
	if n := len(w.gaps); n > 0 && w.gaps[n-1].to == w.size {
		w.gaps[n-1].to += len(last.text) - before
	}
	if w.blankLine {
		last.text = append(last.text, '\n')
	}
	w.blankLine = false
	last.text = append(last.text, s...)
	w.size += len(last.text) - before
	return true
}

// gap adds the note about bytes that are missing there.
func (w *writer) gap(note string, bytes int64) bool {
	from := w.size
	shown := w.text(note)
	w.gaps = append(w.gaps, gap{from, w.size, bytes})
	return shown
}

// lead writes the message, which a result that is not ok always has.
func (w *writer) lead(r *api.Result) {
	message := r.Message
	if message == "" && !r.OK() {
		message = fmt.Sprintf("[FAILED] Tool %q ended with %s.", r.Tool, r.Status)
	}
	shown := w.text(strings.TrimSpace(message))
	if r.Status == api.StatusDenied {
		shown = w.text(verdict(r)) || shown
	}
	w.blankLine = shown
}

// unsaid is a tool's own error where the message quotes only its beginning, and the
// content does not have it. What adapters say of programs behind them ends with the
// stderr that is shown anyway.
func unsaid(r *api.Result) string {
	if r.ToolError == nil || r.Status != api.StatusToolError && r.Status != api.StatusInvalidArgs {
		return ""
	}
	said := strings.TrimSpace(r.ToolError.Message)
	if strings.Contains(r.Message, said) || text.Holds(r.Text(), said) {
		return ""
	}
	return said
}

// verdict says of a denied call who has decided, and why, as models read it.
func verdict(r *api.Result) string {
	raw, err := encode(struct {
		Status  api.Status `json:"status"`
		Decider string     `json:"decider,omitempty"`
		Reason  api.Reason `json:"reason"`
	}{r.Status, r.Decider, r.Reason}, nil)
	if err != nil {
		return "" // a bug, and no reason to lose the result
	}
	return string(raw)
}

// content writes the content, or the structured value if the content is empty, and
// says whether there was anything.
func (w *writer) content(r *api.Result) (shown bool) {
	for _, c := range r.Content {
		shown = w.item(c) || shown
	}
	if len(r.Content) == 0 && !absent(r.Structured) {
		shown = w.json(r.Structured)
	}
	return shown
}

func (w *writer) item(c api.Content) bool {
	if cost := blockBytes + len(c.Data) + len(c.URI) + len(c.Name) + len(c.MIMEType); cost <= w.blockBytes {
		if block := w.show(c); block != nil {
			w.blockBytes -= cost
			w.parts = append(w.parts, part{block: block})
			w.blankLine = false
			return true
		}
	}
	switch {
	case c.LeftOutBytes > 0:
		return w.gap(c.Text, c.LeftOutBytes)
	case c.Type == "json":
		return w.json(c.JSON)
	case c.Type == "blob":
		return w.text(fmt.Sprintf("[blob %s, %d bytes]", mimeType(c), len(c.Data)))
	case c.Type == "resource":
		return w.resource(c)
	case c.Type == "resource_link":
		return w.text(strings.TrimPrefix(c.Name+": "+c.URI, ": "))
	}
	if c.Block && len(w.parts) > 0 && w.parts[len(w.parts)-1].block == nil {
		w.parts = append(w.parts, part{})
	}
	return w.text(c.Text)
}

// resource writes one that stands in the content as text, below its URI.
func (w *writer) resource(c api.Content) bool {
	if len(c.Data) > 0 {
		return w.text(fmt.Sprintf("[%s: %s, %d bytes]", clean(c.URI), mimeType(c), len(c.Data)))
	}
	return w.text(fmt.Sprintf("[%s]\n%s", clean(c.URI), c.Text))
}

// json writes a value compactly; it copies invalid JSON unchanged.
func (w *writer) json(raw json.RawMessage) bool {
	if tidy, ok := cleanJSON(raw); ok {
		raw = tidy
	}
	return w.text(string(raw))
}

// streams writes what went through stdout and stderr. Stdout has a heading if
// it follows content.
func (w *writer) streams(out api.Output, afterContent bool) bool {
	heading := ""
	if afterContent {
		heading = "[stdout]\n"
	}
	stdout := w.stream(heading, out.Stdout)
	return w.stream("[stderr]\n", out.Stderr) || stdout
}

func (w *writer) stream(heading string, s api.StreamOutput) bool {
	if s.DroppedBytes == 0 {
		return strings.TrimSpace(s.Head) != "" && w.text(heading+s.Head)
	}
	w.text(heading + s.Head)
	w.gap(fmt.Sprintf("[... %d bytes dropped ...]", s.DroppedBytes), s.DroppedBytes)
	w.text(s.Tail)
	return true
}

func mimeType(c api.Content) string {
	if c.MIMEType == "" {
		return "application/octet-stream"
	}
	return clean(c.MIMEType)
}
