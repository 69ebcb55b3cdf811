package config

import (
	"strings"
	"testing"
	"testing/fstest"
)

// A tar is a pack by what is in it, even where somebody has made it executable.
func TestPacksAreKnownByTheirContent(t *testing.T) {
	tar := strings.Repeat("\x00", 257) + "ustar\x00"
	files := fstest.MapFS{
		"plain.tar": {Data: []byte(tar), Mode: 0o644}, "executable.tar": {Data: []byte(tar), Mode: 0o755},
		"program": {Data: []byte("#!/bin/sh\n" + strings.Repeat("#", 300)), Mode: 0o755}, "short": {Mode: 0o755},
	}
	m := Machine{Files: files}
	for path, want := range map[string]bool{"/plain.tar": true, "/executable.tar": true, "/program": false, "/short": false} {
		info, err := m.stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.isPack(path, info); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}
