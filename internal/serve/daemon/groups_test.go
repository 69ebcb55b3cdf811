package daemon

import (
	"strings"
	"syscall"
	"testing"
)

const bounded = "access: {agents: {group: no-such-group, tools: [lines]}}\n"

// Whom access means to bound is not left without bounds.
func TestAnUnknownGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bounded)
	d := w.command().start()
	d.waitLog(`access.agents.group: unknown group "no-such-group": make it`)
	if d.code() == 0 {
		t.Error("the daemon starts")
	}

	w.configure("access: {agents: {group: \"12345\", deny: [work]}}\n")
	d = w.daemon()
	w.configure(bounded)
	d.signal(syscall.SIGHUP)
	d.waitLog("the configuration stays as it was")
	if text := d.log.text(); !strings.Contains(text, w.Config+":5") || !strings.Contains(text, `unknown group "no-such-group"`) {
		t.Errorf("the log does not name the place: %s", text)
	}
}
