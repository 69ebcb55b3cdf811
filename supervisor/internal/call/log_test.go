package call

import (
	"bytes"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/supervisor/internal/prepare"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// What is told of a call names it as whoever made it does.
func TestLogNamesTheCall(t *testing.T) {
	var out bytes.Buffer
	base := Base{Log: hclog.New(&hclog.LoggerOptions{Output: &out})}
	made := func(r spec.Request) *Call { return New(new(prepare.Preparer).Bare(r), base) }
	made(spec.Request{ID: "own"}).Log.Warn("first")
	made(spec.Request{ID: "own", LogArgs: []any{"turn", "t", "call", "theirs"}}).Log.Warn("second")
	lines := strings.Split(out.String(), "\n")
	if !strings.HasSuffix(lines[0], "first: call=own") || !strings.HasSuffix(lines[1], "second: call=theirs turn=t") {
		t.Errorf("%q", lines)
	}
}
