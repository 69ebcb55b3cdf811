package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/plugin"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// adopt makes this process the parent of its orphans, so that a test can end
// and reap them.
func adopt(t *testing.T) {
	t.Helper()
	const setChildSubreaper = 36 // PR_SET_CHILD_SUBREAPER
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0); errno != 0 {
		t.Fatal(errno)
	}
}

// end kills an orphan and says how it died.
func end(t *testing.T, pid int) syscall.WaitStatus {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	for {
		if _, err := syscall.Wait4(pid, &status, 0, nil); !errors.Is(err, syscall.EINTR) {
			if err != nil {
				t.Fatal(err)
			}
			return status
		}
	}
}

// statusField reads a line of /proc/PID/status.
func statusField(t *testing.T, pid, name string) string {
	t.Helper()
	text, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	t.Fatalf("no %s in /proc/%s/status", name, pid)
	return ""
}

// wantSignals checks that a mask of /proc/PID/status has all of the signals.
func wantSignals(t *testing.T, pid, mask string, signals []os.Signal) {
	t.Helper()
	bits, err := strconv.ParseUint(statusField(t, pid, mask), 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range signals {
		if bits&(1<<(s.(syscall.Signal)-1)) == 0 {
			t.Errorf("process %s: %v is not in %s", pid, s, mask)
		}
	}
}

func TestOrphans(t *testing.T) {
	adopt(t)
	for _, hold := range []bool{false, true} {
		t.Run(fmt.Sprintf("holdPipes=%t", hold), func(t *testing.T) {
			pids, err := orphans(3, hold)
			if err != nil || len(pids) != 3 {
				t.Fatalf("pids %v, %v; want 3", pids, err)
			}
			for _, pid := range pids {
				examine(t, pid, hold)
				if status := end(t, pid); status.Signal() != syscall.SIGKILL {
					t.Errorf("orphan ended with %v, want SIGKILL", status)
				}
			}
		})
	}
}

func examine(t *testing.T, pid int, hold bool) {
	t.Helper()
	name := strconv.Itoa(pid)
	session, _, errno := syscall.RawSyscall(syscall.SYS_GETSID, uintptr(pid), 0, 0)
	if errno != 0 || int(session) != pid {
		t.Errorf("session %d, %v; want its own, %d", session, errno, pid)
	}
	if parent := statusField(t, name, "PPid"); parent != strconv.Itoa(os.Getpid()) {
		t.Errorf("parent %s: want an orphan, adopted by this process", parent)
	}
	if threads := statusField(t, name, "Threads"); threads != "1" {
		t.Errorf("%s threads, want 1", threads)
	}
	wantSignals(t, name, "SigBlk", append(slices.Clone(ignored), syscall.SIGSEGV, syscall.SIGCHLD))
	entries, err := os.ReadDir(filepath.Join("/proc", name, "fd"))
	if err != nil {
		t.Fatal(err)
	}
	var open, want []string
	for _, entry := range entries {
		open = append(open, entry.Name())
	}
	if hold {
		want = []string{"1", "2"}
	}
	if !slices.Equal(open, want) {
		t.Errorf("open files %q, want %q", open, want)
	}
}

// The orphans are not this process's to wait for, so their output's end is not
// either.
func TestOrphansHoldNoPipe(t *testing.T) {
	adopt(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	pids, err := orphans(2, false)
	if err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	if rest, err := io.ReadAll(read); err != nil || len(rest) > 0 {
		t.Errorf("read %q, %v; want the end", rest, err)
	}
	for _, pid := range pids {
		end(t, pid)
	}
}

func TestIgnoresContextAndSignals(t *testing.T) {
	adopt(t)
	t.Cleanup(func() { signal.Reset(ignored...) })
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var sent []string
		out := plugin.NewOutput(func(event *pluginv1.CallEvent) error {
			switch {
			case event.GetContent() != nil:
				sent = append(sent, event.GetContent().GetText())
			case event.GetHeartbeat() != nil:
				sent = append(sent, "heartbeat")
			}
			return nil
		})
		before := time.Now()
		raw, err := newTool().Run(ctx, json.RawMessage(`{"children":2,"seconds":600}`), out)
		if err != nil || string(raw) != `{"started":2}` {
			t.Errorf("%s, %v", raw, err)
		}
		if took := time.Since(before); took != 10*time.Minute {
			t.Errorf("ended after %s, want 10m", took)
		}
		if want := []string{"started 2 grandchildren\n", "heartbeat"}; !slices.Equal(sent, want) {
			t.Errorf("sent %q, want %q", sent, want)
		}
	})
	wantSignals(t, "self", "SigIgn", ignored)
	endChildren(t)
}

// endChildren ends every child of this process.
func endChildren(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	ended := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			end(t, pid)
			ended++
		}
	}
	if ended != 2 {
		t.Errorf("%d orphans ended, want 2", ended)
	}
}

func TestBadArguments(t *testing.T) {
	out := plugin.NewOutput(func(*pluginv1.CallEvent) error { return nil })
	for _, arguments := range []string{`{"children":-1}`, `{"children":10001}`, `{"seconds":-1}`} {
		if _, err := newTool().Run(t.Context(), json.RawMessage(arguments), out); err == nil {
			t.Errorf("%s: no error", arguments)
		}
	}
}
