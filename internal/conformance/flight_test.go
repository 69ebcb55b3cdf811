package conformance

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/plugin/host"
)

// What to mend depends on what was broken.
func TestFixes(t *testing.T) {
	broke := func(reason string) error { return &host.ProtocolError{Reason: reason} }
	for want, o := range map[string]outcome{
		"send a Result before the process exits":    {err: host.ErrDisconnected, ended: "exit status 0"},
		"find what ended the process":               {err: host.ErrDisconnected, ended: "exit status 2; on stderr: panic: x"},
		"send with an Ask a JSON Schema":            {err: broke("an ask's schema is not valid JSON")},
		"encode it as JSON":                         {err: broke("the structured result is not valid JSON")},
		"keep each message under 4 MiB":             {err: broke("a message is too large: grpc: received message larger than max")},
		"number a call's events from 1 by 1, send ": {err: broke("a second result")},
	} {
		if got := o.fix(); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", o.problem(), got, want)
		}
	}
}
