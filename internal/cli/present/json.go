package present

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/terminal"
)

// Raw prints what is JSON already.
func Raw(w io.Writer, raw []byte) error {
	_, err := fmt.Fprintf(terminal.JSON(w), "%s\n", raw)
	return err
}

// JSON prints a value on one line, or indented for people.
func JSON(w io.Writer, v any, indented bool) error {
	out := json.NewEncoder(terminal.JSON(w))
	out.SetEscapeHTML(false)
	if indented {
		out.SetIndent("", "  ")
	}
	return out.Encode(v)
}

// EventJSON is an event as it is printed, or what stands for those that are missing.
func EventJSON(r api.Record) []byte {
	if r.Gap == nil {
		return r.JSON
	}
	raw, _ := json.Marshal(struct {
		Kind api.EventKind `json:"kind"`
		api.Gap
	}{api.EventGap, *r.Gap})
	return raw
}
