package mcpserver

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/stage"
)

// A check that might take long is left to the client: schema and value are both
// the tool's, and nothing could end it.
func TestDearChecks(t *testing.T) {
	stage.Whole(t)
	t.Parallel()
	p := newOutputCheck(json.RawMessage(`{"type":"object","$defs":{"s":{"allOf":[{"items":{"$ref":"#/$defs/s"}},{"items":{"$ref":"#/$defs/s"}}]}},"properties":{"a":{"$ref":"#/$defs/s"},"n":{"type":"integer"}}}`))
	if p.breach(json.RawMessage(`{"n":"x","a":[[]]}`)) == "" {
		t.Error("a small result is not checked")
	}
	if got := p.breach(json.RawMessage(`{"n":"x","a":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`)); got != "" {
		t.Errorf("a deep one is: %.200s", got)
	}
}
