package daemon

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// A user whom the configuration names and the socket's file keeps out is told of, at the
// start and when a reload names another.
func TestUsersWhomTheSocketKeepsOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "socket: {uids: [12345]}\n")
	d := w.daemon()
	d.waitLog("uids=[12345] ")
	w.configure("socket: {uids: [12345]}\naccess: {x: {uids: [12346]}}\n")
	d.signal(syscall.SIGHUP)
	d.waitLog("uids=[12345, 12346] ")
	if text := d.log.text(); !strings.Contains(text, "cannot connect") || !strings.Contains(text, "mode=0600") {
		t.Errorf("the log does not say why: %s", text)
	}

	w = newWorld(t, "socket: {uids: [12345], mode: 0666}\n")
	d = w.daemon()
	wait.Until(t, "the daemon has said who may what", func() bool { return strings.Contains(d.log.text(), "everybody whom socket lets in") })
	if text := d.log.text(); strings.Contains(text, "cannot connect") {
		t.Errorf("users are let in: %s", text)
	}
}

func TestLockedOut(t *testing.T) {
	file := filepath.Join(t.TempDir(), "socket")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const unknown = 2000000019
	root, other := os.Getgid() == 0, uint32(0)
	for mode, want := range map[fs.FileMode][]uint32{0o600: {other, unknown}, 0o666: nil, 0o660: nil} {
		if mode == 0o660 && !root {
			continue
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := lockedOut([]uint32{other, unknown}, info); !slices.Equal(got, want) {
			t.Errorf("mode %v locks out %v, want %v", mode, got, want)
		}
	}
}
