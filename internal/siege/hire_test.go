package siege

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"testing"
)

// hired is a mob's process.
type hired struct {
	cmd  *exec.Cmd
	end  io.Closer
	told io.Reader
}

// hire starts a mob that has next to no CPU time beside the daemon, its tools and
// its neighbours, as if it were on a machine of its own.
func (d *daemon) hire() *hired {
	d.t.Helper()
	raw, _ := json.Marshal(d.target)
	h := &hired{cmd: exec.Command(os.Args[0])}
	h.cmd.Env, h.cmd.Stderr = append(os.Environ(), asMob+"="+string(raw)), os.Stderr
	in, err := h.cmd.StdinPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	h.end = in
	if h.told, err = h.cmd.StdoutPipe(); err != nil {
		d.t.Fatal(err)
	}
	if err := h.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = h.cmd.Process.Kill(); _ = h.cmd.Wait() })
	d.fence.banish(d.t, h.cmd.Process.Pid)
	return h
}

// dismiss ends it and gives what it has to tell.
func (h *hired) dismiss(t *testing.T) (told tale) {
	t.Helper()
	_ = h.end.Close()
	if err := json.NewDecoder(h.told).Decode(&told); err != nil {
		t.Errorf("the mob: %v", err)
	}
	return told
}
