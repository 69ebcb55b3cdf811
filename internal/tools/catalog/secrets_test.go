package catalog_test

import (
	"os"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/turn"
)

// A call has a secret as it is then: of a tool of a server, of its other requests, and of a
// command. One that cannot be read is why the call does not start.
func TestSecretsAreReadForEachCall(t *testing.T) {
	loaded, machine := load(t, example+"  say: {command: [echo], secrets: {TOKEN: {secret: token}}}\n")
	c := catalog.New(described(), loaded, catalog.Options{Adapter: "/toolhost", State: t.TempDir(), Machine: machine})
	offered := func(name string) (*turn.Tool, *api.Result) {
		t.Helper()
		tool, ok := c.Offered(name)
		switch {
		case !ok:
			t.Fatalf("there is no %s", name)
		case tool.Describe != nil:
			return tool.Describe(t.Context())
		}
		return &tool, nil
	}
	names := []string{"files__read_file", "files:" + catalog.ReadResource, "say"}
	for _, value := range []string{"s3cret", "rotated"} {
		if err := os.WriteFile(loaded.Secrets[0].File, []byte(value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			tool, failed := offered(name)
			if failed != nil || len(tool.Request.Secrets) != 1 || tool.Request.Secrets[0].Value != value {
				t.Errorf("%s: %+v, %+v", name, tool, failed)
			}
		}
	}
	if err := os.Remove(loaded.Secrets[0].File); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if _, failed := offered(name); failed == nil || failed.Status != api.StatusStartFailed || !strings.Contains(failed.Message, "cannot read secret token") {
			t.Errorf("%s: %+v", name, failed)
		}
	}
}

// A rule that denies holds for a tool that has not been described yet: a reload may have
// brought both.
func TestRulesBeforeTheDescription(t *testing.T) {
	loaded, _ := load(t, "tools:\n  deploy: {command: [echo], deny: {to: prod}}\n")
	tool, ok := catalog.New(described(), loaded, catalog.Options{}).Offered("deploy")
	if !ok || tool.Describe == nil || tool.Rule == nil {
		t.Fatalf("offered %t: %+v", ok, tool)
	}
	for arguments, want := range map[string]turn.Mode{`{"to":"prod"}`: turn.ModeDeny, `{"to":"test"}`: ""} {
		if mode, rule := tool.Rule([]byte(arguments)); mode != want || (rule == "") != (want == "") {
			t.Errorf("%s: %q, %q", arguments, mode, rule)
		}
	}
}
