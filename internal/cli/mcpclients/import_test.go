package mcpclients

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/toolhost/toolhost/internal/tools/config"
)

// load loads a toolhost.yaml with this text, on a machine that has these files beside it.
func load(t *testing.T, yaml string, files map[string]string, environ ...string) (*config.Loaded, error) {
	t.Helper()
	all := fstest.MapFS{"etc/toolhost.yaml": {Data: []byte(yaml)}}
	for name, text := range files {
		all[name] = &fstest.MapFile{Data: []byte(text)}
	}
	for name := range maps.Clone(all) {
		all[name].Mode, all[name].Sys = 0o600, &syscall.Stat_t{Uid: 1000}
		for dir := path.Dir(name); ; dir = path.Dir(dir) {
			all[dir] = &fstest.MapFile{Mode: fs.ModeDir | 0o755, Sys: &syscall.Stat_t{}}
			if dir == "." {
				break
			}
		}
	}
	m := config.Machine{Files: all, Dir: "/", Home: "/home/me", UID: 1000, Environ: append([]string{"HOME=/home/me"}, environ...)}
	return config.Load(config.Options{Path: "/etc/toolhost.yaml", Machine: &m})
}

func textOf(t *testing.T, words []string) string {
	t.Helper()
	raw, err := plain(words)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func imports(t *testing.T, text string, environ ...string) (*config.Loaded, string, string) {
	t.Helper()
	yaml, warnings, err := Import([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	l, err := load(t, string(yaml), nil, environ...)
	if err != nil {
		t.Fatalf("%v\n%s", err, yaml)
	}
	return l, string(yaml), strings.Join(warnings, "\n")
}

func TestImportClaudeDesktop(t *testing.T) {
	l, yaml, warnings := imports(t, `{"mcpServers": {
		"filesystem": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/me/src"]},
		"git hub": {"command": "docker", "args": ["run", "-i"], "env": {"GITHUB_TOKEN": "ghp_abc", "LOG": "a$b: #c", "N": 5, "bad name": "x"}, "cwd": "/srv"},
		"remote": {"type": "http", "url": "https://example.org/mcp"},
		"empty": {}
	}}`, "GITHUB_TOKEN=from-env")
	if len(l.Tools) != 2 {
		t.Fatalf("%d tools of\n%s", len(l.Tools), yaml)
	}
	if got := l.Tools[0].MCP.Argv; !reflect.DeepEqual(got, []string{"npx", "-y", "@modelcontextprotocol/server-filesystem", "/home/me/src"}) {
		t.Errorf("words %q", got)
	}
	if got := l.Tools[1].Env; l.Tools[1].Name != "git-hub" || !reflect.DeepEqual(got, []string{"GITHUB_TOKEN=from-env"}) {
		t.Errorf("%s with %q", l.Tools[1].Name, got)
	}
	if strings.Contains(yaml+warnings, "ghp_abc") || strings.Contains(yaml+warnings, "a$b") {
		t.Errorf("the secret was copied:\n%s\n%s", yaml, warnings)
	}
	for _, want := range []string{
		`server "git hub" is called git-hub`, `GITHUB_TOKEN seems to be a secret and is not copied`, `server "remote" is left out: servers over HTTP are not supported`,
		`server "filesystem": npx downloads`, `server "git hub": docker starts a container`, `server "empty" is left out: it has no command`, `"bad name" is left out: it is not a name of a variable`, `the value of LOG is not copied`, `it ran in "/srv"`,
	} {
		if !strings.Contains(warnings, want) {
			t.Errorf("no warning %q in\n%s", want, warnings)
		}
	}
}

// The stubs for secrets are right once they are not comments any more.
func TestImportedStubs(t *testing.T) {
	_, yaml, _ := imports(t, `{"servers": {"a": {"command": "x", "env": {"API_KEY": "k", "DB_TOKEN": "t"}}}}`)
	for _, name := range []string{"API_KEY", "DB_TOKEN"} {
		yaml = strings.Replace(yaml, "\n      "+name+": null", "", 1)
	}
	yaml = strings.ReplaceAll(strings.ReplaceAll(yaml, "\n    env:", ""), "# In place", "## In place")
	yaml = strings.ReplaceAll(strings.ReplaceAll(yaml, "\n# secrets", "\nsecrets"), "    # ", "    ")
	yaml = strings.ReplaceAll(yaml, "\n#   ", "\n  ")
	yaml = strings.Replace(yaml, "## In place of the variables above that are null:", "", 1)
	l, err := load(t, yaml, map[string]string{"home/me/.config/toolhost/secrets/api_key": "k", "home/me/.config/toolhost/secrets/db_token": "t"})
	if err != nil || len(l.Secrets) != 2 || len(l.Tools[0].Secrets) != 2 {
		t.Errorf("%v\n%s", err, yaml)
	}
}

// Servers whose variables have the same name get no secret of one another's.
func TestImportedStubsOfOneName(t *testing.T) {
	_, yaml, warnings := imports(t, `{"mcpServers": {
		"a": {"command": "x", "env": {"API_KEY": "1", "OWN_KEY": "3"}}, "b": {"command": "y", "env": {"API_KEY": "2"}}, "c": {"env": {"OWN_KEY": "4"}}}}`)
	for _, want := range []string{"API_KEY: {secret: a_api_key}", "API_KEY: {secret: b_api_key}", "OWN_KEY: {secret: own_key}", "secrets/a_api_key}", "secrets/b_api_key}"} {
		if !strings.Contains(yaml, want) {
			t.Errorf("no %q in\n%s", want, yaml)
		}
	}
	if strings.Count(warnings, "other servers have the variable API_KEY, too") != 2 {
		t.Errorf("warnings are\n%s", warnings)
	}
}

// A name made for the secret of one server is not that of another's.
func TestImportedStubsOfMadeNames(t *testing.T) {
	_, yaml, _ := imports(t, `{"mcpServers": {
		"github": {"command": "x", "env": {"TOKEN": "1"}}, "gitlab": {"command": "y", "env": {"TOKEN": "2", "GITHUB_TOKEN": "3", "ARG_TOKEN": "4"}},
		"arg": {"command": "z", "args": ["--token", "5"]}}}`, "ARG_TOKEN_2=5")
	for _, want := range []string{" TOKEN: {secret: github_token_2}", " TOKEN: {secret: gitlab_token}", "GITHUB_TOKEN: {secret: github_token}", "ARG_TOKEN: {secret: arg_token}", "${ARG_TOKEN_2}"} {
		if !strings.Contains(yaml, want) {
			t.Errorf("no %q in\n%s", want, yaml)
		}
	}
}

// A server that has a variable in two cases is one; variables that are left out do not count.
func TestImportedStubsOfOneServer(t *testing.T) {
	_, _, warnings := imports(t, `{"mcpServers": {
		"a": {"command": "x", "env": {"API_KEY": "1", "api_key": "2", "MY-KEY": "3"}}, "b": {"command": "y", "env": {"MY-KEY": "4"}}}}`)
	if strings.Contains(warnings, "other servers have") {
		t.Errorf("warnings are\n%s", warnings)
	}
}

func TestImportKeepsWords(t *testing.T) {
	words := []string{"${input:key}", "$HOME", "a b", "{x}", "'", `"`, "#", ": ", "-", "", "true", "1.0", "~/x", "*", "é\n\t", "\u2028"}
	l, yaml, _ := imports(t, fmt.Sprintf(`{"mcp": {"servers": {"s": {"command": "x", "args": %s}}}}`, textOf(t, words)))
	words[12] = "/home/me/x"
	if got := l.Tools[0].MCP.Argv[1:]; !reflect.DeepEqual(got, words) {
		t.Errorf("words %q, want %q of\n%s", got, words, yaml)
	}
}

func TestImportMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "there is neither",
		"{}":                                     `there is neither "mcpServers" nor "servers" nor "context_servers"`,
		"[]":                                     `want {"mcpServers": {...}}`,
		`{"mcpServers": []}`:                     `"mcpServers" must be an object of servers`,
		`{"servers": {}, "mcpServers": {}}`:      `there are "mcpServers" and "servers" in it: leave only one`,
		`{"servers": {}, "servers": {}}`:         `"servers" stands twice: put both together`,
		`{"mcp": {"servers": 1, "servers": 2}}`:  `"servers" stands twice`,
		`{"servers": "x"}`:                       `"servers" must be an object of servers`,
		"{\n\"servers\": {]}":                    "line 2, column 13: invalid character",
		`{"servers": {}} /* `:                    "a comment has no end",
		`{"a": ` + strings.Repeat("[", maxDepth): "nested deeper than 200",
	} {
		if _, _, err := Import([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		} else if strings.Contains(err.Error(), "Go ") || strings.Contains(err.Error(), "config.") {
			t.Errorf("%.60q: %v speaks of Go's types", text, err)
		}
	}
	l, _, _ := imports(t, `{"mcpServers": {}}`)
	if len(l.Tools) != 0 {
		t.Errorf("%+v", l.Tools)
	}
}

// A server that cannot be read is left out; the others are not.
func TestImportLeavesOutWhatIsWrong(t *testing.T) {
	for entry, want := range map[string]string{
		`[]`:                                 `it must be an object`,
		`{"command": ["x"]}`:                 `"command" must be a text`,
		`{"command": "x", "args": "y"}`:      `"args" must be a list of texts`,
		`{"command": "x", "args": [{}]}`:     `"args" must be a list of texts`,
		`{"command": "x", "env": []}`:        `"env" must be an object`,
		`{"command": "x", "disabled": "no"}`: `"disabled" must be true or false`,
	} {
		l, yaml, warnings := imports(t, `{"servers": {"my s": `+entry+`, "good": {"command": "x"}}}`)
		if want := "is left out: " + want; len(l.Tools) != 1 || !strings.Contains(warnings, `server "my s" `+want) || !strings.Contains(yaml, "# my s "+want) {
			t.Errorf("%s: %d tools, warnings %s, want %s in\n%s", entry, len(l.Tools), warnings, want, yaml)
		}
	}
}

// A file without servers is one of no tools, also behind the comment of one left out.
func TestImportOfNothing(t *testing.T) {
	for _, servers := range []string{`{}`, `{"remote": {"url": "https://example.org/mcp"}}`} {
		if _, yaml, _ := imports(t, `{"mcpServers": `+servers+`}`); !strings.HasSuffix(yaml, "\n  {}\n") {
			t.Errorf("%s became\n%s", servers, yaml)
		}
	}
}

// Claude Code keeps servers of projects beside the user's own.
func TestImportTellsOfProjects(t *testing.T) {
	const projects = `"projects": {"/p": {"mcpServers": {"db": {"command": "y", "env": {"K": "S3CR3T"}}, "ab": {}}}, "/q": {"mcpServers": {}}, "/r": {"history": []}}`
	for text, tools := range map[string]int{`{"mcpServers": {"a": {"command": "x"}}, ` + projects + `}`: 1, `{` + projects + `}`: 0} {
		l, yaml, warnings := imports(t, text)
		want := `project "/p" has servers that are not taken: "ab", "db": to import them, copy its mcpServers into a file`
		if len(l.Tools) != tools || !strings.HasPrefix(warnings, want) || strings.Contains(warnings, "\n") || strings.Contains(yaml+warnings, "S3CR3T") {
			t.Errorf("%d tools, warnings %s of\n%s", len(l.Tools), warnings, yaml)
		}
	}
}

func TestImportFromOlderZed(t *testing.T) {
	l, yaml, warnings := imports(t, `{"context_servers": {"s": {"command": {"path": "x", "args": ["a"], "env": {"API_KEY": "S3CR3T"}}}}}`, "API_KEY=given")
	if len(l.Tools) != 1 || !reflect.DeepEqual(l.Tools[0].MCP.Argv, []string{"x", "a"}) || !reflect.DeepEqual(l.Tools[0].Env, []string{"API_KEY=given"}) || strings.Contains(yaml+warnings, "S3CR3T") {
		t.Errorf("tools %+v, warnings %s of\n%s", l.Tools, warnings, yaml)
	}
}

func TestImportedNames(t *testing.T) {
	l, _, _ := imports(t, `{"mcpServers": {"a b": {"command": "x"}, "a/b": {"command": "x"}, "session_status": {"command": "x"}, "é": {"command": "x"}, "`+strings.Repeat("y", 99)+`": {"command": "x"}}}`)
	seen := map[string]bool{}
	for _, tool := range l.Tools {
		seen[tool.Name] = true
	}
	if len(seen) != 5 {
		t.Errorf("names %v", seen)
	}
}

// No secret is in what comes out, wherever it stood, and the rest is.
func TestImportCopiesNoSecrets(t *testing.T) {
	for _, args := range [][]string{
		{"postgresql://user:S3CR3T@host/db"},
		{"postgresql://user:p@ss/S3CR3T@host/db"},
		{"redis://:S3CR3T@host"},
		{"https://S3CR3TS3CR3TS3CR3T@github.com/x"},
		{"https://host/mcp?api_key=S3CR3T"},
		{"--api-key", "S3CR3T"},
		{"--api-key", "-S3CR3T"},
		{"--token=S3CR3T"},
		{"--TOKEN", "S3CR3T"},
		{"--db-password=S3CR3T"},
		{"--auth", "S3CR3T"},
		{"--pat=S3CR3T"},
		{"--header", "X-Mine:S3CR3T"},
		{"-H", "X-Mine: S3CR3T"},
		{"Authorization: Bearer S3CR3T"},
		{"Authorization:S3CR3T"},
		{"bearer S3CR3T"},
		{"--config", `{"exaApiKey":"S3CR3T"}`},
		{"-c", "node x --token S3CR3T"},
		{"-c", "MY_TOKEN=S3CR3T node x"},
		{"-e", "X_PAT=S3CR3T"},
		{"--env=CREDS=S3CR3T"},
		{"-eX=S3CR3T"},
		{"sk-S3CR3T"},
		{"ghp_S3CR3T"},
		{"--x=sk-S3CR3T"},
		{"https://host/s/S3CR3TS3CR3TS3CR3TS3CR3T/mcp"},
		{"--password", "S3CR3T\nmore"},
		{"--key=${S3CR3T}"},
	} {
		text := fmt.Sprintf(`{"mcpServers": {"s": {"command": "x", "args": %s, "env": {"X_PAT": "S3CR3T", "CREDS": "S3CR3T", "API_KEY": "S3CR3T", "PATH": "S3CR3T", "N": {"S3CR3T": 1}}}}}`, textOf(t, append(args, "kept")))
		yaml, warnings, err := Import([]byte(text))
		if err != nil || strings.Contains(string(yaml)+strings.Join(warnings, "\n"), "S3CR3T") {
			t.Errorf("%q: %v\n%s\n%s", args, err, yaml, strings.Join(warnings, "\n"))
		}
		name := placeholderIn.FindStringSubmatch(string(yaml))
		if name == nil || !strings.Contains(strings.Join(warnings, "\n"), "set "+name[1]+" in toolhost's environment") || !strings.Contains(string(yaml), "kept") {
			t.Errorf("%q: %q with\n%s\n%s", args, name, yaml, strings.Join(warnings, "\n"))
			continue
		}
		l, err := load(t, string(yaml), nil, name[1]+"=given")
		if err != nil || !strings.Contains(strings.Join(l.Tools[0].MCP.Argv, " "), "given") {
			t.Errorf("%q: %v\n%s", args, err, yaml)
		}
	}
}

var placeholderIn = regexp.MustCompile(`\$\{([A-Z0-9_]+)\}`)

// Two credentials are two variables, and what is none stays.
func TestImportedPlaceholders(t *testing.T) {
	yaml, _, err := Import([]byte(`{"mcpServers": {"9 s": {"command": "x", "args": ["--token", "a", "--token=b", "--no-auth", "--port", 8080, "@scope/server-sequential-thinking", "http://localhost:3000/mcp", "/home/me/keys"]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	l, err := load(t, string(yaml), nil, "SERVER_9_S_TOKEN=1", "SERVER_9_S_TOKEN_2=2")
	want := []string{"x", "--token", "1", "--token=2", "--no-auth", "--port", "8080", "@scope/server-sequential-thinking", "http://localhost:3000/mcp", "/home/me/keys"}
	if err != nil || !reflect.DeepEqual(l.Tools[0].MCP.Argv, want) {
		t.Errorf("%v, want %q of\n%s", err, want, yaml)
	}
}

// What is lost on the way is told.
func TestImportTellsWhatIsLost(t *testing.T) {
	l, _, warnings := imports(t, `{"mcpServers": {
		"a": {"command": "lost"}, "b": {"command": "y", "timeout": 60, "autoApprove": ["x"], "retries": "S3CR3T", "type": "stdio", "args": ["1"], "args": ["2"]},
		"a": {"command": "x"}, "off": {"disabled": true, "command": "x", "timeout": 5}, "off": {"disabled": true, "command": "x"}
	}}`)
	if len(l.Tools) != 2 || !reflect.DeepEqual(l.Tools[0].MCP.Argv, []string{"x"}) || !reflect.DeepEqual(l.Tools[1].MCP.Argv, []string{"y", "2"}) {
		t.Errorf("%+v", l.Tools)
	}
	for _, want := range []string{
		`server "a" stands twice: only the last one is taken, rename one of them`, `server "off" stands twice`, `server "b": its key "args" stands twice: only the last one is taken`,
		`server "b": its key "timeout" is not taken over: programs differ in its unit: set timeout`,
		`server "b": its key "autoApprove" is not taken over: set mode: ask`, `server "b": its key "retries" is not taken over: toolhost has none of the name`,
	} {
		if !strings.Contains(warnings, want) {
			t.Errorf("no warning %q in\n%s", want, warnings)
		}
	}
	if strings.Contains(warnings, "S3CR3T") || strings.Contains(warnings, `"type"`) || strings.Count(warnings, "\n") != 6 {
		t.Errorf("warnings\n%s", warnings)
	}
}

// Codex and Zed say enabled where others say disabled.
func TestImportLeavesOutWhatIsOff(t *testing.T) {
	l, _, warnings := imports(t, `{"context_servers": {"on": {"command": "x", "enabled": true}, "off": {"command": "x", "enabled": false}}}`)
	if want := `server "off" is left out: it is disabled`; len(l.Tools) != 1 || l.Tools[0].Name != "on" || warnings != want {
		t.Errorf("%d tools, warnings\n%s\nwant %s", len(l.Tools), warnings, want)
	}
}

func TestImportFromVSCode(t *testing.T) {
	l, _, warnings := imports(t, "\ufeff"+`{
		// "servers": the ones of VS Code
		"servers": { /* , } */
			"a": {"command": "x", "args": ["// no comment", "/* nor this */", ",]", "\",}",], "envFile": "${workspaceFolder}/.env",},
			"off": {"command": "x", "disabled": true},
		},
	}`)
	if len(l.Tools) != 1 || !reflect.DeepEqual(l.Tools[0].MCP.Argv, []string{"x", "// no comment", "/* nor this */", ",]", `",}`}) {
		t.Errorf("%+v", l.Tools)
	}
	for _, want := range []string{`server "a": its envFile "${workspaceFolder}/.env" is not read`, `server "off" is left out: it is disabled`} {
		if !strings.Contains(warnings, want) {
			t.Errorf("no warning %q in\n%s", want, warnings)
		}
	}
}

// A client's file says where its servers stand, and may end with a comment.
func TestImportOfClient(t *testing.T) {
	for name, text := range map[string]string{"zed": `{"context_servers": {"a": {"command": "x"}}} // mine`, "codex": "[mcp_servers.a]\ncommand = \"x\" # mine"} {
		c, _ := Named(name)
		if yaml, _, err := c.Import([]byte(text)); err != nil || !strings.Contains(string(yaml), "mcp: [x]") {
			t.Errorf("%s: %v\n%s", name, err, yaml)
		}
		if _, _, err := c.Import(nil); err == nil || !strings.Contains(err.Error(), "there is no") {
			t.Errorf("%s: %v for an empty file", name, err)
		}
	}
}

// Whatever is imported loads.
func FuzzImport(f *testing.F) {
	f.Add([]byte(`{"mcpServers": {"a b": {"command": "x", "args": ["${x}"], "env": {"API_KEY": "k", "B": "c"}, "cwd": "/"}}}`))
	f.Add([]byte(`{"servers": {"a": {"command": "x", "args": ["--token", "a", "-e", "X=y", "://a:b@c"], "disabled": false,},}} // x`))
	f.Add([]byte(`{"servers": {"é": {"url": "http://x"}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		yaml, warnings, err := Import(raw)
		if err != nil {
			return
		}
		for _, w := range warnings {
			if strings.ContainsAny(w, "\n\x1b\x00") {
				t.Errorf("not one line: %q", w)
			}
		}
		var environ []string
		for _, name := range placeholderIn.FindAllStringSubmatch(string(yaml), -1) {
			environ = append(environ, name[1]+"=x")
		}
		if _, err := load(t, string(yaml), nil, environ...); err != nil {
			t.Fatalf("%v\n%s", err, yaml)
		}
	})
}
