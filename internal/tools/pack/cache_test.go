package pack

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

func requested(t *testing.T, s *Cache, r supervisor.Request) supervisor.Request {
	t.Helper()
	r, err := s.Request(r)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A pack is copied once, however often it is asked for; a changed one anew,
// beside the one that calls may still need.
func TestShelf(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var s Cache
	from := packedSample(t)
	ask := supervisor.Request{Tool: supervisor.Tool{Path: from}, Sandbox: &supervisor.Policy{Read: []string{"/usr"}}}
	first, second := requested(t, &s, ask), requested(t, &s, ask)
	if first.Tool.Path != second.Tool.Path || first.Tool.Label != from || first.SHA256 == "" {
		t.Errorf("%+v, then %+v", first.Tool, second.Tool)
	}
	dir := first.Dir
	if !strings.HasPrefix(first.Tool.Path, dir) || !slices.Equal(first.Sandbox.Read, []string{"/usr", dir}) || !slices.Contains(first.Sandbox.Allow, sandbox.SharedUID) {
		t.Errorf("dir %s, sandbox %+v", dir, first.Sandbox)
	}
	if len(ask.Sandbox.Read) != 1 {
		t.Error("the caller's policy was changed")
	}
	ask.Tool.Path, ask.Dir = filepath.Join(t.TempDir(), "other"), "/usr"
	if err := mustCollect(t, Spec{Source: tree(t, sample), Tools: described(), Version: "2"}).Dir(ask.Tool.Path); err != nil {
		t.Fatal(err)
	}
	if third := requested(t, &s, ask); third.Tool.Path == first.Tool.Path || third.Dir != "/usr" {
		t.Errorf("another pack: %+v in %s", third.Tool, third.Dir)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestShelfRefuses(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s := Cache{held: make([]*Opened, maxHeld)}
	for i := range s.held {
		s.held[i] = &Opened{ManifestSHA256: "another"}
	}
	from := packedSample(t)
	r := supervisor.Request{Tool: supervisor.Tool{Path: from}}
	if _, err := s.Request(r); err == nil || !strings.Contains(err.Error(), from+": 64 others are held for calls: restart toolhost") {
		t.Errorf("a full one: %v", err)
	}
	s.held = nil
	r.SHA256 = strings.Repeat("0", 64)
	if _, err := s.Request(r); err == nil || !strings.Contains(err.Error(), "not "+r.SHA256+": it is another pack, or it was changed") {
		t.Errorf("another hash: %v", err)
	}
	r.Tool.Path = t.TempDir()
	if _, err := s.Request(r); err == nil || !strings.Contains(err.Error(), "cannot open the pack "+r.Tool.Path) {
		t.Errorf("an empty folder: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
