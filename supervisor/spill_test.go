package supervisor_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/supervisor"
)

func TestSpill(t *testing.T) {
	dir := t.TempDir()
	host := newHost(t, supervisor.Config{SpillDir: dir})
	r := request("flood", `{"n":3}`)
	r.Limits = supervisor.Limits{OutputBytes: 1 << 10, SpillBytes: 2 << 20}
	result := call(t, host, r)
	wantStatus(t, result, api.StatusOK)
	path := result.Output.Stdout.SpillPath
	info, err := os.Stat(path)
	if err != nil || filepath.Dir(path) != dir || info.Size() != 2<<20 {
		t.Errorf("spill %q: %v, %v", path, info, err)
	}
	if len(result.Warnings) != 1 || !strings.Contains(result.Warnings[0], "limit") {
		t.Errorf("warnings %q", result.Warnings)
	}
}

// Where a result has all of what a command's output was read as, nothing is said of a file
// that has less.
func TestSpillOfWhatIsKeptWhole(t *testing.T) {
	host := newHost(t, supervisor.Config{SpillDir: t.TempDir()})
	for kept, want := range map[int64]int{600: 1, 1500: 0} {
		r := scripted(t, "printf '%.1s\\n' $(seq 1000)") // 2000 bytes, half of which are content
		r.Limits = supervisor.Limits{OutputBytes: kept, SpillBytes: 512}
		result := call(t, host, r)
		wantStatus(t, result, api.StatusOK)
		if len(result.Warnings) != want || (result.Output.Stdout.SpillPath != "") != (want > 0) {
			t.Errorf("%d bytes kept: warnings %q, file %q", kept, result.Warnings, result.Output.Stdout.SpillPath)
		}
	}
}

// All files of calls together are bounded: the oldest go, and what is not a call's stays.
func TestSpillsInAllAreBounded(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "notes.stdout"), make([]byte, 4<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	host := newHost(t, supervisor.Config{SpillDir: dir, SpillTotalBytes: 3 << 20})
	r := request("flood", `{"n":3}`)
	r.Limits = supervisor.Limits{OutputBytes: 1 << 10}
	var paths []string
	for n := range 4 {
		r.ID = fmt.Sprint("call-", n/2) // of the host's own, and not only once
		c := host.Start(t.Context(), r)
		result := c.Result()
		wantStatus(t, result, api.StatusOK)
		<-c.Gone()
		if slices.Contains(paths, result.Output.Stdout.SpillPath) {
			t.Fatalf("call %d has another one's file: %q", n, result.Warnings)
		}
		paths = append(paths, result.Output.Stdout.SpillPath)
	}
	wait.Until(t, "room for the last file", func() bool { _, err := os.Stat(paths[1]); return err != nil })
	for i, path := range paths {
		if info, err := os.Stat(path); (err == nil) != (i >= 2) || err == nil && info.Size() != 3<<19 {
			t.Errorf("file %d: %v, %v", i, info, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "notes.stdout")); err != nil {
		t.Error(err)
	}
	if _, err := supervisor.New(context.Background(), supervisor.Config{SpillDir: dir, SpillTotalBytes: 1}); err == nil || !strings.Contains(err.Error(), "too few") {
		t.Error(err)
	}
}
