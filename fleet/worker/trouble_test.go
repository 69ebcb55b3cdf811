package worker

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
)

// What goes on for long is logged once, and its end.
func TestTroubleIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	w := &Worker{config: Config{Logger: hclog.New(&hclog.LoggerOptions{Output: &log})}}
	full, gone := errors.New("no space left on device"), errors.New("no such file or directory")
	for _, err := range []error{nil, full, full, full, gone, nil, nil, full} {
		w.troubled(err)
	}
	out := log.String()
	if n := strings.Count(out, "\n"); n != 4 || strings.Count(out, full.Error()) != 2 || strings.Count(out, "again\n") != 1 || w.trouble != full.Error() {
		t.Errorf("%d lines, and %q at last:\n%s", n, w.trouble, out)
	}
}
