package daemon

import (
	"os"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/access"
	"github.com/toolhost/toolhost/internal/config"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// An upgrade changes nothing for whom the socket lets in: they go on to do everything,
// with a warning, until access says what they may.
func TestGuestsOfOlderConfigurations(t *testing.T) {
	t.Parallel()
	const guest = 12345
	for settings, admin := range map[string]bool{
		"socket: {uids: [12345]}\n":                                           true,
		"socket: {mode: 0660, group: \"12345\"}\n":                            true,
		"socket: {uids: [12345]}\naccess: {x: {uids: [1], roles: [watch]}}\n": false,
	} {
		w := newWorld(t, settings)
		loaded, err := config.Load(config.Options{Path: w.Config})
		if err != nil {
			t.Fatal(err)
		}
		d := &daemon{options: Options{Loaded: loaded}}
		who, ok := d.bookOf(loaded).OfUser(guest, nil)
		if !ok || who.IsAdmin() != admin || !who.Has(access.ToCall) {
			t.Errorf("%s: %+v %t", settings, who, ok)
		}
		p := w.daemon()
		wait.Until(t, "the daemon has said who may what", func() bool {
			return !admin || strings.Contains(p.log.text(), "everybody whom socket lets in may do everything")
		})
		if !admin && strings.Contains(p.log.text(), "may do everything, since") {
			t.Errorf("%s: %s", settings, p.log.text())
		}
	}
	plain := newWorld(t, "")
	if p := plain.daemon(); strings.Contains(p.log.text(), "may do everything") {
		t.Errorf("a single user is warned: %s", p.log.text())
	}
	if _, err := os.Stat(plain.State); err != nil {
		t.Error(err)
	}
}
