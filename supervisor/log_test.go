package supervisor

import (
	"bytes"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
)

// What is told of a call names it as whoever made it does.
func TestLogNamesTheCall(t *testing.T) {
	var out bytes.Buffer
	s := &Supervisor{config: Config{Logger: hclog.New(&hclog.LoggerOptions{Output: &out})}}
	s.newCall(s.preparer.Bare(Request{ID: "own"})).log().Warn("first")
	s.newCall(s.preparer.Bare(Request{ID: "own", LogArgs: []any{"turn", "t", "call", "theirs"}})).log().Warn("second")
	lines := strings.Split(out.String(), "\n")
	if !strings.HasSuffix(lines[0], "first: call=own") || !strings.HasSuffix(lines[1], "second: call=theirs turn=t") {
		t.Errorf("%q", lines)
	}
}
