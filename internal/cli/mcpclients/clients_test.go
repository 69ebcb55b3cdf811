package mcpclients

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

var entry = Entry{Command: "/usr/bin/toolhost", Args: []string{"mcp", "--config", "/home/me/<a & b>.yaml"}}

// Each file in testdata has, for a client, a text before and after, or why it is not
// changed. What was made is not changed a second time.
func TestSet(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			parts := map[string]string{}
			for _, part := range archive.Files {
				parts[part.Name] = string(part.Data)
			}
			c, err := Named(strings.TrimSpace(string(archive.Comment)))
			if err != nil {
				t.Fatal(err)
			}
			for _, lines := range []string{"\n", "\r\n"} {
				in := func(part string) string { return strings.ReplaceAll(parts[part], "\n", lines) }
				got, err := c.Set([]byte(in("before")), "toolhost", entry)
				if why := strings.TrimSpace(parts["error"]); why != "" {
					if err == nil || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "hujson") {
						t.Errorf("error %v, want %s", err, why)
					}
					continue
				}
				want := in("after")
				if len(parts["before"]) == 0 {
					want = parts["after"]
				}
				if err != nil || string(got) != want {
					t.Errorf("%v, got\n%s\nwant\n%s", err, got, want)
				}
				if again, err := c.Set(got, "toolhost", entry); err != nil || string(again) != string(got) {
					t.Errorf("a second time: %v\n%s", err, again)
				}
				if _, err := c.servers(got); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A file keeps its mode and is a link still, the text from before is beside it, and a
// change in the meantime is not lost.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "a.json"), filepath.Join(dir, "link.json")
	if err := os.WriteFile(path, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	f, err := Read(link)
	if err != nil {
		t.Fatal(err)
	}
	backup, err := f.Replace([]byte("new"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{path: "new", link: "new", backup: "old"} {
		raw, err := os.ReadFile(name)
		info, _ := os.Stat(name)
		if err != nil || string(raw) != want || info.Mode().Perm() != 0o640 {
			t.Errorf("%s: %q, %v, %v", name, raw, info.Mode(), err)
		}
	}
	if at, err := os.Readlink(link); err != nil || at != path {
		t.Errorf("the link: %s, %v", at, err)
	}
	if _, err := f.Replace([]byte("newer")); err == nil || !strings.Contains(err.Error(), "changed by another program") {
		t.Errorf("a change is overwritten: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A link to a file that is not there yet stays one; without a folder to make the file in
// it is refused.
func TestDanglingLink(t *testing.T) {
	dir := t.TempDir()
	link, target := filepath.Join(dir, "link.json"), filepath.Join(dir, "there", "a.json")
	if err := os.Symlink("there/a.json", link); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(link); err == nil || !strings.Contains(err.Error(), link+" is a link to "+target) {
		t.Errorf("without its folder: %v", err)
	}
	if err := os.Mkdir(filepath.Dir(target), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := Read(link)
	if err != nil || f.Path != target || !f.Missing {
		t.Fatalf("%+v, %v", f, err)
	}
	if _, err := f.Replace([]byte("new")); err != nil {
		t.Fatal(err)
	}
	at, err := os.Readlink(link)
	if raw, _ := os.ReadFile(target); err != nil || at != "there/a.json" || string(raw) != "new" {
		t.Errorf("the link: %s, %v, its file: %q", at, err, raw)
	}
}

// No copy is overwritten, and there is one of each text.
func TestBackupsStay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	for n, text := range []string{"old", "new", "old", "newer"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		backup, err := f.Replace([]byte("last"))
		if want := path + []string{".before-toolhost", ".before-toolhost-2", ".before-toolhost", ".before-toolhost-3"}[n]; err != nil || backup != want {
			t.Errorf("%q is in %s, %v, want %s", text, backup, err, want)
		}
		if raw, err := os.ReadFile(backup); err != nil || string(raw) != text {
			t.Errorf("%s has %q, %v, want %q", backup, raw, err, text)
		}
	}
}

// The servers of Claude Code's projects are there by name.
func TestServersOfProjects(t *testing.T) {
	c, _ := Named("claude-code")
	const projects = `"projects":{"/p":{"history":["x"],"mcpServers":{"db":{"command":"y"}}},"/q":{"history":[]},"/r":1}`
	for text, want := range map[string]int{`{"mcpServers":{},` + projects + `}`: 1, `{` + projects + `}`: 1, `{"mcpServers":{},"projects":{}}`: 0} {
		f, err := c.servers([]byte(text))
		if err != nil || len(f.projects) != want || want == 1 && !slices.Equal(f.projects["/p"], []string{"db"}) {
			t.Errorf("%s: %v, %v", text, f.projects, err)
		}
	}
}

// A byte order mark stays, and is no mistake.
func TestByteOrderMark(t *testing.T) {
	for name, text := range map[string]string{"cursor": "{\"mcpServers\": {}}\n", "codex": "[mcp_servers.a]\ncommand = \"x\"\n"} {
		c, _ := Named(name)
		want, err := c.Set([]byte(text), "toolhost", entry)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Set([]byte("\ufeff"+text), "toolhost", entry)
		if err != nil || string(got) != "\ufeff"+string(want) {
			t.Errorf("%s: %v, got %q, want a mark and %q", name, err, got, want)
		}
		if _, err := c.servers(got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// No text makes a setter panic, and what it makes can be read again.
func FuzzSet(f *testing.F) {
	f.Add([]byte("{\n  \"mcpServers\": {} // x\n}"), uint8(0))
	f.Add([]byte("[mcp_servers.toolhost]\ncommand = \"x\" # y\n"), uint8(5))
	f.Fuzz(func(t *testing.T, text []byte, which uint8) {
		c := clients[int(which)%len(clients)]
		got, err := c.Set(text, "toolhost", entry)
		if err != nil {
			return
		}
		again, err := c.Set(got, "toolhost", entry)
		if err != nil || string(again) != string(got) {
			t.Errorf("%s: %q became %q and then %q, %v", c.Name, text, got, again, err)
		}
	})
}

// What strings and comments hold is not nested, nor does it hide what is.
func TestNesting(t *testing.T) {
	c, err := Named("zed")
	if err != nil {
		t.Fatal(err)
	}
	much := maxDepth + 1
	for text, want := range map[string]bool{
		`{"history": ["` + strings.Repeat(`\u001b[31m\"[`, much) + `"]}`:                                                       true,
		"{// " + strings.Repeat("[", much) + "\n/*" + strings.Repeat("{\n", much) + "*/}":                                      true,
		`{"x": "` + strings.Repeat("]", much) + `", "a": ` + strings.Repeat("[", much) + `1` + strings.Repeat("]", much) + `}`: false,
	} {
		if _, err := c.Set([]byte(text), "toolhost", entry); (err == nil) != want {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}
