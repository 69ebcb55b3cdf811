package httpapi

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/access/tokens"
)

// signIn opens a link as the console does, and gives the session's token.
func (w *world) signIn(link string, want int) string {
	w.t.Helper()
	_, secret, _ := strings.Cut(link, "#link=")
	body, _ := json.Marshal(api.Login{Link: secret})
	status, said := w.overTCP("POST", loginPath, string(body), "Origin", "http://"+w.address, "Sec-Fetch-Site", "same-origin")
	if status != want {
		w.t.Fatalf("login: %d %s", status, said)
	}
	var session api.Session
	_ = json.Unmarshal([]byte(said), &session)
	return session.Token
}

func TestALoginLinkWorksOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	link, err := w.client.LoginLink(w.ctx())
	if err != nil {
		t.Fatal(err)
	}
	if link.URL != "http://"+w.address+link.Path || !strings.HasPrefix(link.Path, "/#link=") {
		t.Errorf("the whole link is %q", link.URL)
	}
	token := w.signIn(link.Path, http.StatusOK)
	if _, formed := tokens.IDOf(token); !formed {
		t.Fatalf("the session's token is %q", token)
	}
	w.signIn(link.Path, http.StatusForbidden)
	w.signIn("/#link=x", http.StatusForbidden)
	own := "http://" + w.address
	for name, test := range map[string]struct {
		method, path string
		header       []string
		status       int
	}{
		"read":                  {"GET", "/api/tools", nil, 200},
		"change":                {"POST", "/api/turns", []string{"Origin", own, "Sec-Fetch-Site", "same-origin"}, 201},
		"change from elsewhere": {"POST", "/api/turns", []string{"Origin", "http://evil.example"}, 403},
		"read from elsewhere":   {"GET", "/api/tools", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		"let others in":         {"POST", "/api/login-links", []string{"Origin", own}, 403},
		"as a cookie":           {"GET", "/api/tools", []string{"Cookie", "toolhost_session=" + token, "Authorization", "Basic x"}, 401},
	} {
		body := ""
		if test.path == "/api/turns" {
			body = "{}"
		}
		header := append([]string{"Authorization", "Bearer " + token}, test.header...)
		if status, said := w.overTCP(test.method, test.path, body, header...); status != test.status {
			t.Errorf("%s: %d %s", name, status, said)
		}
	}
	if status, said := w.overTCP("GET", "/api/whoami", "", "Authorization", "Bearer "+token); !strings.Contains(said, `"session":true`) || !strings.Contains(said, `"roles":["admin"]`) {
		t.Errorf("who: %d %s", status, said)
	}
	if status, _ := w.overTCP("POST", "/api/logout", "", "Authorization", "Bearer "+token); status != 200 {
		t.Errorf("logout: %d", status)
	}
	for _, again := range []string{"GET /api/tools", "POST /api/logout"} {
		method, path, _ := strings.Cut(again, " ")
		if status, _ := w.overTCP(method, path, "", "Authorization", "Bearer "+token); status != 401 {
			t.Errorf("%s after logout: %d", again, status)
		}
	}
	if status, _ := w.overTCP("POST", "/api/logout", "", "Authorization", bearer); status != 400 {
		t.Errorf("logout of a token: %d", status)
	}
}

// A link is for who has made it, and its session may do no more.
func TestASessionIsWhoMadeTheLink(t *testing.T) {
	t.Parallel()
	w := newTeam(t)
	link := w.link("caller")
	token := w.signIn(link, http.StatusOK)
	who, roles := w.whoami(token)
	if who != "token caller" || len(roles) != 1 || roles[0] != "call" {
		t.Errorf("the session is %s with %q", who, roles)
	}
	if status, _ := w.overTCP("GET", "/api/history/turns", "", "Authorization", "Bearer "+token); status != 200 {
		t.Errorf("its own history: %d", status)
	}
	if _, err := w.store.Revoke("caller", "test"); err != nil {
		t.Fatal(err)
	}
	if status, _ := w.overTCP("GET", "/api/history/turns", "", "Authorization", "Bearer "+token); status != 401 {
		t.Errorf("the session goes on without its token: %d", status)
	}
}

// The session of the file's token ends with that: another one in its place did not let it in.
func TestASessionOfTheFilesToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	_, said := w.overTCP("POST", "/api/login-links", "", "Authorization", bearer)
	var link api.LoginLink
	if err := json.Unmarshal([]byte(said), &link); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	session := w.signIn(link.Path, http.StatusOK)
	if status, said := w.overTCP("GET", "/api/whoami", "", "Authorization", "Bearer "+session); status != 200 || !strings.Contains(said, `"identity":"token"`) {
		t.Errorf("the session: %d %s", status, said)
	}
	config := w.server.config
	config.Token = strings.Repeat("N", len(testToken))
	next, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := next.bearer(session, true); ok || err != nil {
		t.Errorf("it goes on with another token: %v", err)
	}
	if who, ok, err := w.server.bearer(session, true); !ok || err != nil || !who.session {
		t.Errorf("it does not go on with the same: %v", err)
	}
}

func TestLinksEnd(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	l := newLinks(func() time.Time { return now })
	old, _, _ := l.add(tokens.Holder{}, "a")
	now = now.Add(linkLife)
	if _, ok := l.take(old); ok {
		t.Error("a link is too old")
	}
	for range maxLinks {
		if _, _, ok := l.add(tokens.Holder{}, "a"); !ok {
			t.Fatal("no room for a link")
		}
	}
	if _, _, ok := l.add(tokens.Holder{}, "a"); ok {
		t.Error("there is no bound to links")
	}
	if _, _, ok := l.add(tokens.Holder{}, "b"); !ok {
		t.Error("one takes the links of another")
	}
	now = now.Add(linkLife)
	if _, _, ok := l.add(tokens.Holder{}, "a"); !ok {
		t.Error("old links are not forgotten")
	}
}
