package lookup

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestSteerable(t *testing.T) {
	for _, c := range []struct {
		folder, link unix.Stat_t
		uid          int
		want         bool
	}{
		{unix.Stat_t{Mode: 0o755}, unix.Stat_t{Uid: 7}, 0, false},
		{unix.Stat_t{Mode: 0o1777}, unix.Stat_t{}, 0, true},
		{unix.Stat_t{Mode: 0o770}, unix.Stat_t{}, 0, true},
		{unix.Stat_t{Mode: 0o700, Uid: 7}, unix.Stat_t{}, 0, true},
		{unix.Stat_t{Mode: 0o1777}, unix.Stat_t{Uid: 8}, 7, true},
		{unix.Stat_t{Mode: 0o777}, unix.Stat_t{Uid: 7}, 7, false},
		{unix.Stat_t{Mode: 0o1777}, unix.Stat_t{Uid: 0}, 7, false},
		{unix.Stat_t{Mode: 0o775, Uid: 7}, unix.Stat_t{Uid: 8}, 7, false},
	} {
		if got := steerable(&c.folder, &c.link, c.uid); got != c.want {
			t.Errorf("folder %o of %d, link of %d, for %d: %v", c.folder.Mode, c.folder.Uid, c.link.Uid, c.uid, got)
		}
	}
}

func TestWay(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	if err := errors.Join(os.MkdirAll("a/b", 0o700), os.Symlink("a", "rel"), os.Symlink(dir+"/rel/b", "a/abs"), os.Symlink("loop", "loop"), os.Symlink("../none/x", "a/dangling")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]struct {
		links   []string
		missing string
	}{
		dir + "/a/b":        {},
		"a/b":               {},
		dir + "/rel/../a/b": {links: []string{dir + "/rel"}},
		dir + "/rel/abs":    {links: []string{dir + "/rel", dir + "/a/abs", dir + "/rel"}},
		dir + "/rel/c/d":    {links: []string{dir + "/rel"}, missing: dir + "/a/c"},
		dir + "/a/dangling": {links: []string{dir + "/a/dangling"}, missing: dir + "/none"},
		dir + "/loop":       {links: slices.Repeat([]string{dir + "/loop"}, maxLinks)},
	} {
		if links, missing := Way(path); !slices.Equal(links, want.links) || missing != want.missing {
			t.Errorf("%s: %v, %q", path, links, missing)
		}
	}
}
