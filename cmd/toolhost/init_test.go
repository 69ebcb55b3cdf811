package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/binaries"
)

// Every command pays for what packages make before main: patterns, tables and the
// like are made when they are first used (internal/lazy).
func TestLittleIsMadeBeforeMain(t *testing.T) {
	const (
		ours = 1000  // allocations of one of our packages: the table of configuration keys has most
		all  = 9_750 // of all, which NATS (2,100), Prometheus, gRPC and others have most of
	)
	if os.Getenv("TOOLHOST_VM") != "" {
		t.Skip("builds tools with go, which the VM does not have")
	}
	dir := t.TempDir()
	if err := binaries.Into(dir, "toolhost"); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, "toolhost"), "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	total := 0
	for line := range strings.Lines(said.String()) {
		// init internal/bytealg @0.008 ms, 0 ms clock, 0 bytes, 0 allocs
		fields := strings.Fields(line)
		if len(fields) < 10 || fields[0] != "init" {
			continue
		}
		n, err := strconv.Atoi(fields[len(fields)-2])
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if total += n; n > ours && strings.Contains(fields[1], "toolhost") {
			t.Errorf("%s allocates %d times before main, at most %d are fine", fields[1], n, ours)
		}
	}
	if total == 0 || total > all {
		t.Errorf("%d allocations before main, at most %d are fine", total, all)
	}
}
