package config

import (
	"errors"
	"flag"
	"io/fs"
	"maps"
	"path"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/toolhost/toolhost/supervisor"
)

var update = flag.Bool("update", false, "rewrite generated documents")

// sut is a machine that is described by the paths of its files. A path that
// ends with / is a folder; a program begins with "#!"; "-> TARGET" is a link.
func sut(files map[string]string, environ ...string) Machine {
	all := fstest.MapFS{}
	add := func(name string, f *fstest.MapFile) {
		f.Sys = &syscall.Stat_t{Uid: 1000}
		all[name] = f
		for dir := path.Dir(name); ; dir = path.Dir(dir) {
			if all[dir] == nil {
				all[dir] = &fstest.MapFile{Mode: fs.ModeDir | 0o755, Sys: &syscall.Stat_t{}}
			}
			if dir == "." {
				break
			}
		}
	}
	for name, text := range files {
		target, link := strings.CutPrefix(text, "-> ")
		f := &fstest.MapFile{Data: []byte(text), Mode: 0o644}
		switch {
		case strings.HasSuffix(name, "/"):
			f.Mode = fs.ModeDir | 0o755
		case link:
			f.Mode, f.Data = fs.ModeSymlink|0o777, []byte(target)
		case strings.HasPrefix(text, "#!"):
			f.Mode = 0o755
		}
		add(strings.Trim(name, "/"), f)
	}
	return Machine{Files: all, Dir: "/work", Home: "/home/me", UID: 1000, Environ: environ}
}

// world is what tests find on their machine beside the configuration.
var world = map[string]string{
	"/etc/th/bin/search": "#!", "/etc/th/bin/grep": "#!", "/home/me/src/": "", "/home/me/notes.txt": "x",
	"/etc/th/secrets/api": "s3cret", "/etc/th/secrets/long": strings.Repeat("x", supervisor.MaxSecretBytes+3), "/run/creds/db": "pw", "/srv/data/": "",
}

// load loads /etc/th/toolhost.yaml with this text.
func load(t *testing.T, text string, environ ...string) (*Loaded, error) {
	t.Helper()
	return loadFiles(t, map[string]string{"/etc/th/toolhost.yaml": text}, environ...)
}

func loadFiles(t *testing.T, files map[string]string, environ ...string) (*Loaded, error) {
	t.Helper()
	all := maps.Clone(world)
	maps.Copy(all, files)
	m := sut(all, append([]string{"HOME=/home/me", "CREDENTIALS_DIRECTORY=/run/creds"}, environ...)...)
	return Load(Options{Path: "/etc/th/toolhost.yaml", Machine: &m})
}

func mustLoad(t *testing.T, text string, environ ...string) *Loaded {
	t.Helper()
	l, err := load(t, text, environ...)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return l
}

func problemsOf(t *testing.T, err error) Problems {
	t.Helper()
	list, ok := errors.AsType[Problems](err)
	if !ok {
		t.Fatalf("no Problems: %v", err)
	}
	return list
}
