package main

import (
	"testing"

	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor"
)

func TestOneOfSeveralToolsIsNamed(t *testing.T) {
	both := []*pluginv1.ToolDescription{{Name: "a"}, {Name: "b"}}
	for _, test := range []struct {
		tool  supervisor.Tool
		tools []*pluginv1.ToolDescription
		want  string
		err   string
	}{
		{supervisor.Tool{Path: "./x", Name: "b"}, both, "b", ""},
		{supervisor.Tool{Path: "./x"}, both[:1], "a", ""},
		{supervisor.Tool{Path: "./x", Name: "c"}, both, "", ""},
		{supervisor.Tool{Path: "./x"}, both, "", "./x has several tools: name one behind it, as in toolsdk run ./x a; it has a, b"},
		{supervisor.Tool{Path: "/tmp/copy/x", Label: "x.tar"}, both, "", "x.tar has several tools: name one behind it, as in toolsdk run x.tar a; it has a, b"},
	} {
		got, err := (&target{tool: test.tool}).choose(&supervisor.Description{Tools: test.tools})
		if got.GetName() != test.want || (err == nil) != (test.err == "") || err != nil && err.Error() != test.err {
			t.Errorf("%+v: %q, %v; want %q, %q", test.tool, got.GetName(), err, test.want, test.err)
		}
	}
}
