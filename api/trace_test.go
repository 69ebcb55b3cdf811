package api_test

import (
	"encoding/json"
	"testing"

	"github.com/toolhost/toolhost/api"
)

func TestTraceParentOfMetadata(t *testing.T) {
	const one, two = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-0000000000000001-00"
	for meta, want := range map[string]string{
		``: "", `null`: "", `[]`: "", `{`: "", `{"traceparent":5}`: "", `{"traceparent":"00-x"}`: "", `{"traceparent":"` + one + "\\n" + `"}`: "",
		`{"a":1,"traceparent":"` + one + `"}`: one,
	} {
		if got := api.TraceParent(json.RawMessage(meta)); got != want {
			t.Errorf("%s: %q", meta, got)
		}
	}
	for _, c := range []struct{ meta, trace, want string }{
		{``, one, `{"traceparent":"` + one + `"}`},
		{`null`, one, `null`},
		{`[1]`, one, `[1]`},
		{`{"b":1.00, "a":{}}`, one, `{"a":{},"b":1.00,"traceparent":"` + one + `"}`},
		{`{"traceparent":"` + one + `"}`, two, `{"traceparent":"` + two + `"}`},
		{`{ "traceparent":"` + one + `"}`, one, `{ "traceparent":"` + one + `"}`}, // as it was written
		{`{"a":1}`, "", `{"a":1}`},
		{`{"a":1}`, `x"`, `{"a":1}`},
	} {
		if got := string(api.WithTraceParent(json.RawMessage(c.meta), c.trace)); got != c.want {
			t.Errorf("%s with %q: %s", c.meta, c.trace, got)
		}
	}
}
