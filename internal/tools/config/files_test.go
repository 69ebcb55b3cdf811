package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/toolhost/toolhost/supervisor"
)

func TestLookup(t *testing.T) {
	const user, xdg, etc = "/home/me/.config/toolhost/toolhost.yaml", "/xdg/toolhost/toolhost.yaml", "/etc/toolhost/toolhost.yaml"
	all := map[string]string{user: "", xdg: "", etc: "", "/work/toolhost.yaml": ""}
	for _, c := range []struct {
		given   string
		environ []string
		without []string
		name    string
	}{
		{"my.yaml", []string{"TOOLHOST_CONFIG=/other.yaml"}, nil, "my.yaml"},
		{"", []string{"TOOLHOST_CONFIG=/other.yaml", "XDG_CONFIG_HOME=/xdg"}, nil, "/other.yaml"},
		{"/dev/null", []string{"TOOLHOST_CONFIG=/other.yaml"}, nil, ""},
		{"", []string{"TOOLHOST_CONFIG=/dev/null"}, nil, ""},
		{"", []string{"XDG_CONFIG_HOME=/xdg"}, nil, xdg},
		{"", []string{"XDG_CONFIG_HOME=xdg"}, nil, user},
		{"", nil, nil, user},
		{"", nil, []string{user}, etc},
		{"", nil, []string{user, etc}, ""},
	} {
		files := map[string]string{}
		for name, text := range all {
			files[name] = text
		}
		for _, name := range c.without {
			delete(files, name)
		}
		name, path := sut(files, c.environ...).Lookup(c.given)
		if name != c.name || name == "my.yaml" && path != "/work/my.yaml" {
			t.Errorf("%+v finds %q (%s)", c, name, path)
		}
	}
}

// A file that was asked for must be there.
func TestNamedFileMustExist(t *testing.T) {
	m := sut(world, "TOOLHOST_CONFIG=nosuch.yaml")
	_, err := Load(Options{Machine: &m})
	if err == nil || err.Error() != "nosuch.yaml: the file cannot be read: file does not exist: make it, or correct the path" {
		t.Error(err)
	}
}

func TestTrust(t *testing.T) {
	const config = "/etc/th/toolhost.yaml"
	for name, c := range map[string]struct {
		uid    int
		change func(fstest.MapFS)
		want   string
	}{
		"own":                        {1000, func(fstest.MapFS) {}, ""},
		"root's":                     {1000, func(f fstest.MapFS) { own(f, config, 0) }, ""},
		"another's":                  {1000, func(f fstest.MapFS) { own(f, config, 1001) }, "belongs to uid 1001: chown it to uid 1000 or root"},
		"a user's, for root":         {0, func(fstest.MapFS) {}, "belongs to uid 1000: chown it to uid 0 or root"},
		"all may write":              {1000, func(f fstest.MapFS) { mode(f, config, 0o666) }, "others may write to /etc/th/toolhost.yaml (mode 0666): chmod go-w"},
		"group may write":            {1000, func(f fstest.MapFS) { mode(f, config, 0o664) }, ""},
		"group may write, for root":  {0, func(f fstest.MapFS) { own(f, config, 0); mode(f, config, 0o664) }, "others may write to"},
		"in another's folder":        {1000, func(f fstest.MapFS) { own(f, "/etc/th", 1001) }, "/etc/th belongs to uid 1001"},
		"in an open folder":          {1000, func(f fstest.MapFS) { mode(f, "/etc/th", fs.ModeDir|0o777) }, "others may write to /etc/th (mode 0777)"},
		"below an open folder":       {1000, func(f fstest.MapFS) { mode(f, "/etc", fs.ModeDir|0o777) }, "others may write to /etc (mode 0777)"},
		"below a sticky folder":      {1000, func(f fstest.MapFS) { mode(f, "/etc", fs.ModeDir|fs.ModeSticky|0o777) }, ""},
		"owner unknown":              {1000, func(f fstest.MapFS) { f["etc/th/toolhost.yaml"].Sys = nil }, "its owner is not known"},
		"a link to an open folder":   {1000, func(f fstest.MapFS) { link(f, "/etc/th", "../open/th"); mode(f, "/open", fs.ModeDir|0o777) }, "others may write to /open"},
		"a link to a trusted folder": {1000, func(f fstest.MapFS) { link(f, "/etc/th", "../open/th") }, ""},
		"a link to itself":           {1000, func(f fstest.MapFS) { link(f, "/etc/th", "/etc/th") }, "cannot be read"},
		"no plain file":              {1000, func(f fstest.MapFS) { mode(f, config, fs.ModeNamedPipe|0o644) }, "it is not a plain file"},
	} {
		m := sut(map[string]string{config: "", "/open/th/toolhost.yaml": ""})
		m.UID = c.uid
		if c.uid == 0 && name != "a user's, for root" {
			own(m.Files.(fstest.MapFS), config, 0)
		}
		c.change(m.Files.(fstest.MapFS))
		_, err := Load(Options{Path: config, Machine: &m})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func own(f fstest.MapFS, path string, uid uint32) {
	f[strings.TrimPrefix(path, "/")].Sys = &syscall.Stat_t{Uid: uid}
}

func mode(f fstest.MapFS, path string, m fs.FileMode) { f[strings.TrimPrefix(path, "/")].Mode = m }

// link puts a link in the place of a folder, whose files go.
func link(f fstest.MapFS, path, target string) {
	name := strings.TrimPrefix(path, "/")
	for file := range f {
		if strings.HasPrefix(file, name+"/") {
			delete(f, file)
		}
	}
	f[name] = &fstest.MapFile{Mode: fs.ModeSymlink | 0o777, Data: []byte(target), Sys: &syscall.Stat_t{Uid: 1000}}
}

// On the real machine: what a user would have, and what is refused.
func TestThisMachine(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "toolhost.yaml")
	if err := os.WriteFile(path, []byte("limits: {memory: 1GiB}\ninclude: [more.yaml]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "more.yaml"), []byte("tools: {sh: {command: [/bin/sh, -c, \"{code}\"]}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Load(Options{Path: path})
	if err != nil || l.Config.Limits.MemoryBytes != 1<<30 || len(l.Tools) != 1 || len(l.Files) != 2 {
		t.Fatalf("%+v, %v", l, err)
	}
	if err := os.Chmod(path, 0o602); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(Options{Path: path}); err == nil || !strings.Contains(err.Error(), "others may write to "+path) {
		t.Error(err)
	}
}

func TestInclude(t *testing.T) {
	l, err := loadFiles(t, map[string]string{
		"/etc/th/toolhost.yaml":      "include: [conf.d/*.yaml, ~/more.yaml, none/*.yaml]\ntools: {a: {plugin: bin/search}}",
		"/etc/th/conf.d/2.yaml":      "tools: {c: {plugin: ../bin/search, class: heavy}}",
		"/etc/th/conf.d/1.yaml":      "include: [deep/x.yaml]\nclasses: {heavy: {memory: 1GiB}}\ntools: {b: {plugin: ../bin/grep}}",
		"/etc/th/conf.d/deep/x.yaml": "limits: {pids: 9}\ntools: {x: {plugin: ../../bin/grep, args: [zz]}}",
		"/etc/th/conf.d/note.txt":    "not: read",
		"/home/me/more.yaml":         "secrets: {s: {file: notes.txt}}",
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range l.Tools {
		names = append(names, tool.Name+" "+tool.Source.String())
	}
	want := []string{"a /etc/th/toolhost.yaml:2", "b /etc/th/conf.d/1.yaml:3", "x /etc/th/conf.d/deep/x.yaml:2", "c /etc/th/conf.d/2.yaml:1"}
	if !reflect.DeepEqual(names, want) {
		t.Errorf("tools %q, want %q", names, want)
	}
	if len(l.Files) != 5 || l.Config.Limits.Pids != 9 || l.Tools[3].Limits.MemoryBytes != 1<<30 || l.Secrets[0].File != "/home/me/notes.txt" {
		t.Errorf("%+v", l)
	}
}

// Only what the file writes is a pattern, whatever its folder and the home are called.
func TestIncludeBesideOddNames(t *testing.T) {
	m := sut(map[string]string{
		"/a[1]/b*[/toolhost.yaml": "include: [conf.d/*.yaml, ~/*.yaml, \"${MORE}/[x]*.yaml\"]",
		"/a[1]/b*[/conf.d/x.yaml": "limits: {pids: 9}",
		"/a1/bb[/conf.d/y.yaml":   "zzz: 1",
		"/home/m?/x.yaml":         "turn: {maxCalls: 7}",
		"/home/me/x.yaml":         "zzz: 1",
		`/more\*/xy.yaml`:         "kill: {grace: 1s}",
	}, `MORE=/more\*`)
	m.Home = "/home/m?"
	l, err := Load(Options{Path: "/a[1]/b*[/toolhost.yaml", Machine: &m})
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Files) != 4 || l.Config.Limits.Pids != 9 || l.Turn.Budget.MaxCalls != 7 {
		t.Errorf("files %q, %+v", l.Files, l.Config.Limits)
	}
	if want := []string{"/a[1]/b*[/conf.d", "/home/m?", `/more\*`}; !reflect.DeepEqual(l.Sources[:min(len(want), len(l.Sources))], want) {
		t.Errorf("sources %q, want %q first", l.Sources, want)
	}
}

func TestIncludeMistakes(t *testing.T) {
	for want, files := range map[string]map[string]string{
		`/etc/th/b.yaml:1:11: include[0]: the file "/etc/th/toolhost.yaml" includes itself`: {
			"/etc/th/toolhost.yaml": "include: [b.yaml]", "/etc/th/b.yaml": "include: [toolhost.yaml]",
		},
		`/etc/th/toolhost.yaml:1:11: include[0]: the file "/etc/th/toolhost.yaml" includes itself`: {
			"/etc/th/toolhost.yaml": "include: ['*.yaml']",
		},
		`the file "/etc/th/b.yaml" is included already`: {
			"/etc/th/toolhost.yaml": "include: [b.yaml, ./b.yaml]", "/etc/th/b.yaml": "",
		},
		`/etc/th/b.yaml:2:3: tools.a: "a" stands already in /etc/th/toolhost.yaml:1`: {
			"/etc/th/toolhost.yaml": "tools: {a: {plugin: bin/search}}\ninclude: [b.yaml]", "/etc/th/b.yaml": "tools:\n  a: {plugin: bin/search}",
		},
		`/etc/th/b.yaml:1:16: limits.pids: limits.pids is set already in /etc/th/toolhost.yaml:1`: {
			"/etc/th/toolhost.yaml": "limits: {pids: 1}\ninclude: [b.yaml]", "/etc/th/b.yaml": "limits: {pids: 1}",
		},
		`/etc/th/b.yaml:1:18: limits.memory: "lots" is not a size`: {
			"/etc/th/toolhost.yaml": "include: [b.yaml]", "/etc/th/b.yaml": "limits: {memory: lots}",
		},
	} {
		_, err := loadFiles(t, files)
		if err == nil || !strings.Contains(err.Error(), want) || len(problemsOf(t, err)) != 1 {
			t.Errorf("want %s\ngot %v", want, err)
		}
	}
}

func TestIncludesAreBounded(t *testing.T) {
	files := map[string]string{"/etc/th/toolhost.yaml": "include: [0.yaml]"}
	for i := range 20 {
		files[fmt.Sprintf("/etc/th/%d.yaml", i)] = fmt.Sprintf("include: [%d.yaml]", i+1)
	}
	_, err := loadFiles(t, files)
	if err == nil || !strings.Contains(err.Error(), "is included over more than 8 files") {
		t.Error(err)
	}
	files = map[string]string{"/etc/th/toolhost.yaml": "include: ['d/*']"}
	for i := range 100 {
		files[fmt.Sprintf("/etc/th/d/%d.yaml", i)] = ""
	}
	_, err = loadFiles(t, files)
	if err == nil || !strings.Contains(err.Error(), "is one more than the 64 files that are read") {
		t.Error(err)
	}
}

// An included file is no less dangerous than the first.
func TestIncludedFilesAreTrusted(t *testing.T) {
	m := sut(map[string]string{"/etc/th/toolhost.yaml": "include: [/srv/x.yaml]", "/srv/x.yaml": ""})
	mode(m.Files.(fstest.MapFS), "/srv/x.yaml", 0o666)
	_, err := Load(Options{Path: "/etc/th/toolhost.yaml", Machine: &m})
	if err == nil || !strings.Contains(err.Error(), `toolhost.yaml:1:11: include[0]: the file "/srv/x.yaml" cannot be trusted`) {
		t.Error(err)
	}
}

func TestFilesAreBounded(t *testing.T) {
	for text, want := range map[string]string{
		"# " + strings.Repeat("x", maxFileBytes):                   "the file has more than 1048576 bytes: split it with include",
		strings.Repeat("- a\n", maxTokens):                         "words and marks, more than 50000",
		"state: " + strings.Repeat("{a: ", 1000):                   "nesting is deeper than 24",
		"state:\n" + strings.Repeat("- ", 1000) + "a":              "nesting is deeper than 24",
		strings.Repeat("[", 100_000):                               "nesting is deeper than 24",
		"tools: {t: {mcp: [x], tools: {" + manyNames(1100) + "}}}": "more than 1024 names",
		"tools: {t: {mcp: [" + strings.Repeat("x, ", 2000) + "]}}": "the command has 2000 words, more than 1024",
		"tools: {t: {mcp: [x], env: {" + manyNames(300) + "}}}":    "more than 256 names",
		"a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]":                "alias, which is not taken",
	} {
		_, err := load(t, text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		}
	}
}

func manyNames(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, "n%d: {}, ", i)
	}
	return out.String()
}

func TestSecretRead(t *testing.T) {
	longest := strings.Repeat("x", supervisor.MaxSecretBytes)
	m := sut(map[string]string{
		"/s/plain": "abc", "/s/line": "abc\n", "/s/crlf": "abc\r\n", "/s/two": "a\n\n", "/s/empty": "\n", "/s/nul": "a\x00b",
		"/s/big": strings.Repeat("x", supervisor.MaxSecretBytes+1), "/s/full": longest + "\r\n", "/s/huge": longest + "\r\n\r\n",
	})
	for name, want := range map[string]string{"plain": "abc", "line": "abc", "crlf": "abc", "two": "a\n", "full": longest} {
		if got, err := (Secret{Name: "s", File: "/s/" + name}).Read(m); err != nil || got != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"empty", "nul", "big", "huge", "nosuch"} {
		got, err := (Secret{Name: "s", File: "/s/" + name}).Read(m)
		if err == nil || got != "" || !strings.Contains(err.Error(), "secret s") || strings.Contains(err.Error(), "a\x00b") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// The hash is that of what was read, includes among it, and of where it was.
func TestHash(t *testing.T) {
	hash := func(included string) string {
		l, err := loadFiles(t, map[string]string{"/etc/th/toolhost.yaml": "include: [more.yaml]\n", "/etc/th/more.yaml": included})
		if err != nil {
			t.Fatal(err)
		}
		return l.Hash
	}
	const text = "turn: {maxCalls: 5}\n"
	want := sha256.Sum256([]byte("21 /etc/th/toolhost.yaml 21 include: [more.yaml]\n17 /etc/th/more.yaml 20 " + text))
	if got := hash(text); got != hex.EncodeToString(want[:]) {
		t.Errorf("%s", got)
	}
	if hash(text) == hash("turn: {maxCalls: 6}\n") {
		t.Error("what an included file says is not in the hash")
	}
}
