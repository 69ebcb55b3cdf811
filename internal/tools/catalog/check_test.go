package catalog_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// Nobody is asked about a command that cannot be made of the call's arguments.
func TestACommandIsCheckedBeforeItIsAskedAbout(t *testing.T) {
	tool, err := newCatalog(t, "tools: {list: {command: [ls, \"{path}\"], description: Lists., timeoutArgument: ms}}", described()).Find(t.Context(), "list")
	if err != nil {
		t.Fatal(err)
	}
	for arguments, want := range map[string]string{
		`{"path":"a"}`:           "",
		`{"path":"a","ms":1000}`: "",
		`{"path":"a\u0000b"}`:    "NUL",
		`{"path":"-R"}`:          "option",
		`{}`:                     "missing",
	} {
		err := tool.Check(json.RawMessage(arguments), nil)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", arguments, err, want)
		}
	}
}
