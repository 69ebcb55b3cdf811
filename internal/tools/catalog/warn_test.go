package catalog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/tools/catalog"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// A tool that the file names by itself is that one, wherever a server stands
// that offers one of the same name.
func TestTheFilesOwnToolsWin(t *testing.T) {
	const server, own = "  s: {mcp: [server, rude], prefix: ''}\n", "  echo: {command: [printf, operator]}\n"
	for _, yaml := range []string{"tools:\n" + server + own, "tools:\n" + own + server} {
		host := &describer{tools: map[string][]*pluginv1.ToolDescription{"rude": {tool("echo"), tool("other")}}}
		c := newCatalog(t, yaml, host)
		found, err := c.Find(t.Context(), "echo")
		if err != nil || found.Request.Command == nil || len(host.asked) > 0 {
			t.Errorf("found %+v, %v; asked %q", found.Entry, err, host.asked)
		}
		tools, problems := c.All(t.Context())
		var names []string
		for _, one := range tools {
			names = append(names, one.Name)
			if one.Name == "echo" && one.Request.Command == nil {
				t.Errorf("all: the server's echo")
			}
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != "echo other" || len(problems) > 0 {
			t.Errorf("tools %s, problems %q", got, problems)
		}
		if known, err := c.Known("echo"); err != nil || known.Request.Command == nil {
			t.Errorf("known %+v, %v", known.Entry, err)
		}
		if list, err := c.Server(t.Context(), "s"); err != nil || len(list) != 1 {
			t.Errorf("of the server: %d tools, %v", len(list), err)
		}
		expectWarning(t, c, "tool s (", "toolhost.yaml:", "echo is left out, for echo (")
	}
}

// Nor does a server's tool stand in for one of the file's that is broken.
func TestTheFilesOwnToolsWinEvenBroken(t *testing.T) {
	host := &describer{tools: map[string][]*pluginv1.ToolDescription{"rude": {tool("search")}}}
	c := newCatalog(t, "tools:\n  s: {mcp: [server, rude], prefix: ''}\n  search: {plugin: ./search}\n", host)
	if found, err := c.Find(t.Context(), "search"); err == nil {
		t.Errorf("found %+v", found.Entry)
	}
	if tools, problems := c.All(t.Context()); len(tools) != 0 || len(problems) != 1 {
		t.Errorf("%d tools, problems %q", len(tools), problems)
	}
	if _, err := c.Known("search"); err == nil {
		t.Error("it is known")
	}
}

// The tool of toolhost's own that every turn answers is not a server's.
func TestSessionStatusIsReserved(t *testing.T) {
	host := &describer{tools: map[string][]*pluginv1.ToolDescription{"rude": {tool("session_status"), tool("other")}}}
	c := newCatalog(t, "tools:\n  s: {mcp: [server, rude], prefix: ''}\n", host)
	tools, problems := c.All(t.Context())
	if len(tools) != 1 || tools[0].Name != "other" || len(problems) > 0 {
		t.Errorf("tools %v, problems %q", tools, problems)
	}
	expectWarning(t, c, "tool s (", "toolhost.yaml:2", "session_status is left out, for toolhost's own tool has its name")
	if found, err := c.Find(t.Context(), "session_status"); err == nil {
		t.Errorf("found %+v", found.Entry)
	}
	if _, err := c.Known("session_status"); err == nil {
		t.Error("it is known")
	}
	prefixed := newCatalog(t, "tools:\n  s: {mcp: [server, rude]}\n", host)
	if _, err := prefixed.Find(t.Context(), "s__session_status"); err != nil || len(prefixed.Warnings()) > 0 {
		t.Errorf("with a prefix: %v, warnings %q", err, prefixed.Warnings())
	}
}

func expectWarning(t *testing.T, c *catalog.Catalog, parts ...string) {
	t.Helper()
	for _, warning := range c.Warnings() {
		missing := slices.IndexFunc(parts, func(part string) bool { return !strings.Contains(warning, part) })
		if missing < 0 {
			return
		}
	}
	t.Errorf("no warning with all of %q in %q", parts, c.Warnings())
}

// Settings that name no tool are told of, once, with their line.
func TestSettingsOfNoTool(t *testing.T) {
	host := &describer{tools: map[string][]*pluginv1.ToolDescription{"files": {tool("echo")}}}
	loaded, machine := load(t, `
tools:
  files:
    mcp: [server, files]
    tools:
      Echo: {hidden: true}
      eco: {mode: deny}
      elsewhere: {mode: deny}
      echo: {mode: ask}
`)
	var told []string
	c := catalog.New(host, loaded, catalog.Options{
		Adapter: "/bin/toolhost", Machine: machine, Warn: func(warning string) { told = append(told, warning) },
	})
	if len(c.Warnings()) > 0 {
		t.Errorf("before it is described: %q", c.Warnings())
	}
	for range 2 {
		if _, err := c.Find(t.Context(), "files__echo"); err != nil {
			t.Fatal(err)
		}
	}
	expectWarning(t, c, "toolhost.yaml:6", "tools.files.tools.Echo names no tool", `did you mean "echo"?`)
	expectWarning(t, c, "toolhost.yaml:7", "tools.files.tools.eco names no tool", `did you mean "echo"?`)
	expectWarning(t, c, "toolhost.yaml:8", "tools.files.tools.elsewhere names no tool that the server offers, and has no effect")
	if len(c.Warnings()) != 3 || !slices.Equal(told, c.Warnings()) {
		t.Errorf("warnings %q, told %q", c.Warnings(), told)
	}
}

// What the server offers, and the adapter leaves out, is not called unknown.
func TestSettingsOfAToolThatIsLeftOut(t *testing.T) {
	host := &describer{
		tools:    map[string][]*pluginv1.ToolDescription{"files": {tool("echo")}},
		warnings: []string{`tool "bad" is left out: a reason`, `tool "bad.one" is left out: a reason`},
	}
	c := newCatalog(t, "tools: {files: {mcp: [server, files], tools: {bad: {mode: deny}, bad.one: {mode: deny}, other: {mode: deny}}}}", host)
	if _, err := c.Find(t.Context(), "files__echo"); err != nil {
		t.Fatal(err)
	}
	expectWarning(t, c, "tools.files.tools.other names no tool")
	if got := strings.Join(c.Warnings(), "\n"); strings.Contains(got, "tools.bad") || len(c.Warnings()) != 3 {
		t.Errorf("warnings %s", got)
	}
}

// A server that cannot be offered at first does not warn twice.
func TestWarningsComeOnce(t *testing.T) {
	host := &describer{tools: map[string][]*pluginv1.ToolDescription{"files": {tool("echo")}}}
	loaded, machine := load(t, `
secrets: {token: {file: token}}
tools:
  files: {mcp: [server, files], tools: {eco: {mode: deny}, echo: {secrets: {X: {secret: token}}}}}
`)
	if err := os.Remove(filepath.Join(filepath.Dir(loaded.Path), "token")); err != nil {
		t.Fatal(err)
	}
	c := catalog.New(host, loaded, catalog.Options{Adapter: "/bin/toolhost", Machine: machine})
	for range 2 {
		_, _ = c.Find(t.Context(), "files__echo")
	}
	if len(host.asked) != 2 || len(c.Warnings()) != 1 {
		t.Errorf("asked %q, warnings %q", host.asked, c.Warnings())
	}
}

// Settings go by the server's own name of a tool, also where it passes under
// another.
func TestSettingsByTheServersOwnName(t *testing.T) {
	const safe = "admin_tools_list_148795b531"
	host := &describer{tools: map[string][]*pluginv1.ToolDescription{"files": {tool(safe), tool("other")}}}
	c := newCatalog(t, `
tools:
  files: {mcp: [server, files], tools: {admin.tools/list: {hidden: true}}}
`, host)
	tools, problems := c.All(t.Context())
	if len(tools) != 1 || len(problems) > 0 || len(c.Warnings()) > 0 {
		t.Errorf("%d tools, problems %q, warnings %q", len(tools), problems, c.Warnings())
	}
}

// A server that has another fault each time it is asked has the last one.
func TestWarningsOfTheLastDescription(t *testing.T) {
	host := &describer{tools: map[string][]*pluginv1.ToolDescription{"files": {tool("echo")}}}
	loaded, machine := load(t, "tools: {files: {mcp: [server, files], tools: {eco: {mode: deny}}}}")
	told := 0
	c := catalog.New(host, loaded, catalog.Options{Adapter: "/bin/toolhost", Machine: machine, Warn: func(string) { told++ }})
	for i := range 100 {
		host.warnings = []string{fmt.Sprintf("fault %d", i)}
		if err := c.Renew(t.Context(), "files"); err != nil {
			t.Fatal(err)
		}
	}
	expectWarning(t, c, "fault 99")
	if len(c.Warnings()) != 2 || told != 101 {
		t.Errorf("%d were told, %q are kept", told, c.Warnings())
	}
}
