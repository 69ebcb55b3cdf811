package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/client"
	"github.com/toolhost/toolhost/internal/access"
	"github.com/toolhost/toolhost/internal/access/tokens"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/internal/tools/config"
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

// A reload that leaves nobody in access warns of it as a start does.
func TestGuestsAfterAReload(t *testing.T) {
	t.Parallel()
	const said = "everybody whom socket lets in may do everything"
	w := newWorld(t, "socket: {uids: [12345]}\naccess: {x: {uids: [1], roles: [watch]}}\n")
	d := w.daemon()
	if strings.Contains(d.log.text(), said) {
		t.Error("it warns of what is not so")
	}
	w.configure("socket: {uids: [12345]}\n")
	d.signal(syscall.SIGHUP)
	d.waitLog("configuration loaded")
	if !strings.Contains(d.log.text(), said) {
		t.Error("nothing says that guests may do everything by now")
	}
}

// The one token of earlier versions goes on as an administrator's, with a warning.
func TestAnOldTokenFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.Listen = "127.0.0.1:0"
	old := strings.Repeat("OLDTOKEN", 6)
	if err := os.MkdirAll(w.State, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.State, TokenName), []byte(old+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := w.daemon()
	c, err := client.New(client.Options{URL: d.tcp(), Token: old})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	begun, err := w.client.Begin(wait.Context(t), api.TurnSpec{}) // the user of the socket's
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Turn(wait.Context(t), begun.TurnID); err != nil {
		t.Errorf("its bearer does not see all turns: %v", err)
	}
	if err := c.Abort(wait.Context(t), begun.TurnID); err != nil {
		t.Errorf("nor may it abort them: %v", err)
	}
	d.waitLog("never expires and allows everything")
}

// An approval for a token's holder is over with the token, also where another one has
// its name by then.
func TestApprovalsOfAToken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := &daemon{tokens: tokens.Open(dir)}
	create := func() {
		t.Helper()
		if _, _, err := d.tokens.Create(tokens.Spec{Name: "ci", Roles: []access.Role{access.Call}}); err != nil {
			t.Fatal(err)
		}
	}
	stands := func(a api.Approval) bool {
		t.Helper()
		stands, err := d.stands(a)
		if err != nil {
			t.Error(err)
		}
		return stands
	}
	create()
	given := api.Approval{Owner: "token ci", For: api.ForIdentity, At: time.Now()}
	if !stands(given) || !stands(api.Approval{Owner: "uid 0"}) {
		t.Error("what was just given does not stand")
	}
	if stands(api.Approval{Owner: "token nosuch", At: time.Now()}) {
		t.Error("what was given for nobody stands")
	}
	if _, err := d.tokens.Revoke("ci", "uid 0"); err != nil {
		t.Fatal(err)
	}
	if stands(given) {
		t.Error("it stands without the token")
	}
	create()
	if stands(given) {
		t.Error("it stands for another token of the name")
	}
	given.At = time.Now()
	if !stands(given) {
		t.Error("what was given for the new token does not stand")
	}
	if err := os.WriteFile(filepath.Join(dir, tokens.FileName), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.stands(given); err == nil {
		t.Error("nobody can know whether it stands")
	}
}

// So it is for the bearer of the token in the file.
func TestApprovalsOfTheTokenFile(t *testing.T) {
	t.Parallel()
	d := &daemon{options: Options{State: t.TempDir()}}
	path, made := filepath.Join(d.options.State, TokenName), time.Now()
	given := api.Approval{Owner: "token", For: api.ForIdentity, At: made.Add(time.Minute)}
	if stands, err := d.stands(given); stands || err != nil {
		t.Errorf("without the token: %v, %v", stands, err)
	}
	for _, test := range []struct {
		made   time.Time
		stands bool
	}{{made, true}, {made.Add(time.Hour), false}} {
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, test.made, test.made)); err != nil {
			t.Fatal(err)
		}
		if stands, err := d.stands(given); stands != test.stands || err != nil {
			t.Errorf("given at %s, for a token of %s: %t, %v", given.At, test.made, stands, err)
		}
	}
}
