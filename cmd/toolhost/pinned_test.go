package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/internal/tools/pins"
)

// One tool of a server can be accepted where nothing was, and why it cannot is said where
// nothing can be kept.
func TestAcceptOneWhereNothingIsPinned(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for state, ok := range map[string]bool{filepath.Join(dir, "state"): true, filepath.Join(dir, "file"): false} {
		s := pinnedServer{file: pins.In(state, "toolhost.yaml", "git"), after: map[string]pins.Tool{"status": {}}, only: []string{"status"}}
		if err := s.accept(); (err == nil) != ok {
			t.Errorf("in %s: %v", state, err)
		}
	}
}
