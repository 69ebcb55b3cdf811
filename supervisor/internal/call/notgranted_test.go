package call

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor/spec"
)

func TestPathsIn(t *testing.T) {
	for said, want := range map[string][]string{
		"cat: /srv/a.txt: No such file or directory":    {"/srv/a.txt"},
		"ls: cannot access '/srv/a b': No such file":    {"/srv/a b"},
		`open "/srv/a b/c": permission denied`:          {"/srv/a b/c"},
		"FileNotFoundError: [Errno 2]: '/srv/x.py'":     {"/srv/x.py"},
		"see /srv/a, /srv/b and (/srv/c).":              {"/srv/a", "/srv/b", "/srv/c"},
		"--file=/srv/a":                                 {"/srv/a"},
		"/srv/a\n/srv/b":                                {"/srv/a", "/srv/b"},
		"https://example.org/srv/a":                     nil,
		"a/b and 1/2":                                   nil,
		"\t/src/tool/main.go:21 +0x1d\nopen /srv/a: no": {"/srv/a"},
		"": nil,
	} {
		if got := pathsIn(said); !slices.Equal(got, want) {
			t.Errorf("%q names %q, want %q", said, got, want)
		}
	}
}

// A path is asked after where the tool says that it has not reached it.
func TestNamedPaths(t *testing.T) {
	for said, want := range map[string][]string{
		"cat: /srv/a: No such file or directory\nsee /srv/b": {"/srv/a"},
		"open /srv/a: Permission denied":                     {"/srv/a"},
		"see /srv/a":                                         nil,
		"":                                                   nil,
		"cat: /srv/x y: No such file or directory": {"/srv/x", "/srv/x y"},
	} {
		c := bare(spec.Request{Command: &spec.Command{Argv: []string{"sh", "-c", "ln -s /etc/shadow l; exit 1", "/srv/x y"}}})
		r := &api.Result{}
		r.Output.Stderr.Head = said
		if got := c.namedPaths(r); !slices.Equal(got, want) {
			t.Errorf("%q names %q, want %q", said, got, want)
		}
	}
}

// A path is not asked after where the tool has only named one below it, or a word
// that it is part of.
func TestNamedPathsAreWhole(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for said, want := range map[string][]string{
		"sh: cannot create /srv/b/f: Read-only file system": {"/srv/b/f"},
		"ls: cannot access /srv/b/: No such file":           {"/srv/b"},
		"ls: cannot access /srv/b-2: No such file":          {"/srv/b-2"},
		"cannot read /mnt/srv/b":                            {"/mnt/srv/b"},
		"cannot read /mnt/srv/b or /srv/b.":                 {"/mnt/srv/b", "/srv/b"},
		"cannot read a data file":                           nil,
		"cannot read 'data.txt'":                            {filepath.Join(here, "data.txt")},
		"cannot read /workspace/data.txt.":                  {"/workspace/data.txt", filepath.Join(here, "data.txt")},
		"cannot read data.txt.gz":                           nil,
	} {
		c := bare(spec.Request{Command: &spec.Command{Argv: []string{"sh", "ls /srv/b; ls /srv/b/", "dat", "data.txt"}}})
		c.p.Dir = sandbox.Workspace
		r := &api.Result{}
		r.Output.Stderr.Head = said
		if got := c.namedPaths(r); !slices.Equal(got, want) {
			t.Errorf("%q names %q, want %q", said, got, want)
		}
	}
}

// A file system that hangs keeps no more than so many looks at it.
func TestLooksAreBounded(t *testing.T) {
	c := bare(spec.Request{})
	for range MaxLooks {
		c.Looks <- struct{}{}
	}
	if found := c.look([]string{"/etc"}); found != nil || len(c.Tasks.Wait(0)) > 0 {
		t.Errorf("found %v, under way %v", found, c.Tasks.Wait(0))
	}
}
