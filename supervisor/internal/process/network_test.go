package process

import "testing"

type quiet struct{ Network }

// A network that comes when the process is freed would be ended by nobody.
func TestNoNetworkAfterTheEnd(t *testing.T) {
	p := &Process{end: func() {}, pipes: &pipes{}, stdoutEnded: func() {}}
	if !p.SetNetwork(quiet{}) || p.Network() == nil {
		t.Error("a living process has no network")
	}
	p.letGo()
	if p.SetNetwork(nil) || p.Network() != (quiet{}) {
		t.Error("one that is freed has another")
	}
}
