package httpapi

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// login opens a link as a browser does and gives the cookie that it sets.
func (w *world) login(path string) (*http.Cookie, *http.Response) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.ctx(), http.MethodGet, "http://"+w.address+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Sec-Fetch-Site", "cross-site") // a link in a terminal on the web
	r.Header.Set("Sec-Fetch-Mode", "navigate")
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		w.t.Fatal(err)
	}
	response.Body.Close()
	for _, c := range response.Cookies() {
		return c, response
	}
	return nil, response
}

func TestALoginLinkWorksOnce(t *testing.T) {
	t.Parallel()
	pages := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("page " + r.URL.Path)) })
	w := newWorld(t, func(c *Config) { c.Pages = pages })
	link, err := w.client.LoginLink(w.ctx())
	if err != nil {
		t.Fatal(err)
	}
	if link.URL != "http://"+w.address+link.Path {
		t.Errorf("the whole link is %q", link.URL)
	}
	cookie, response := w.login(link.Path)
	if cookie == nil || response.StatusCode != http.StatusSeeOther || response.Header.Get("Location") != "/" {
		t.Fatalf("%s, cookie %v", response.Status, cookie)
	}
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" || len(cookie.Value) < 32 {
		t.Errorf("cookie %+v", cookie)
	}
	if again, response := w.login(link.Path); again != nil || response.StatusCode != http.StatusForbidden {
		t.Errorf("opened again: %s", response.Status)
	}
	if guessed, response := w.login(loginPath + "?link=x"); guessed != nil || response.StatusCode != http.StatusForbidden {
		t.Errorf("guessed: %s", response.Status)
	}
	w.browse(cookie.String())
}

// browse does what a page of the console would, and what others would like to.
func (w *world) browse(cookie string) {
	w.t.Helper()
	cookie, _, _ = strings.Cut(cookie, ";")
	own := "http://" + w.address
	for name, test := range map[string]struct {
		method, path string
		header       []string
		status       int
	}{
		"read":                      {"GET", "/api/tools", nil, 200},
		"change":                    {"POST", "/api/turns", []string{"Origin", own}, 201},
		"change, as browsers say":   {"POST", "/api/turns", []string{"Origin", own, "Sec-Fetch-Site", "same-origin"}, 201},
		"change from nowhere":       {"POST", "/api/turns", nil, 403},
		"change from a bookmark":    {"POST", "/api/turns", []string{"Sec-Fetch-Site", "none"}, 403},
		"change from elsewhere":     {"POST", "/api/turns", []string{"Origin", "http://evil.example"}, 403},
		"read from elsewhere":       {"GET", "/api/tools", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		"let others in":             {"POST", "/api/login-links", []string{"Origin", own}, 403},
		"wrong token beside cookie": {"GET", "/api/tools", []string{"Authorization", "Bearer x"}, 401},
	} {
		body := ""
		if test.method == http.MethodPost && test.path == "/api/turns" {
			body = "{}"
		}
		if status, said := w.overTCP(test.method, test.path, body, append(test.header, "Cookie", cookie)...); status != test.status {
			w.t.Errorf("%s: %d %s", name, status, said)
		}
	}
	w.page("", http.StatusUnauthorized)
	w.page(cookie, http.StatusOK)
	if status, _ := w.overTCP("POST", "/api/logout", "", "Origin", own, "Cookie", cookie); status != 200 {
		w.t.Errorf("logout: %d", status)
	}
	if status, _ := w.overTCP("GET", "/api/tools", "", "Cookie", cookie); status != 401 {
		w.t.Errorf("after logout: %d", status)
	}
}

// page asks for one of the console's.
func (w *world) page(cookie string, want int) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.ctx(), http.MethodGet, "http://"+w.address+"/", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Cookie", cookie)
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		w.t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != want {
		w.t.Errorf("page with cookie %q: %s", cookie, response.Status)
	}
}

func TestLinksAndSessionsEnd(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	s := newSessions("token", func() time.Time { return now })
	old, _, _ := s.link()
	link, _, _ := s.link()
	session, ok := s.open(link)
	if !ok || !s.valid(session) {
		t.Fatal("the link opens nothing")
	}
	now = now.Add(linkLife)
	if _, ok := s.open(old); ok {
		t.Error("a link is too old")
	}
	if now = now.Add(sessionLife - linkLife - 1); !s.valid(session) {
		t.Error("a session ended too early")
	}
	if now = now.Add(1); s.valid(session) {
		t.Error("a session is too old")
	}
	for range maxLinks {
		if _, _, ok := s.link(); !ok {
			t.Fatal("no room for a link")
		}
	}
	if _, _, ok := s.link(); ok {
		t.Error("there is no bound to links")
	}
	now = now.Add(linkLife)
	if _, _, ok := s.link(); !ok {
		t.Error("old links are not forgotten")
	}
}

func (s *sessions) mustOpen(t *testing.T) string {
	t.Helper()
	link, _, _ := s.link()
	cookie, ok := s.open(link)
	if !ok {
		t.Fatal("the link opens nothing")
	}
	return cookie
}

// A daemon that is started again knows the sessions of the one before, as long
// as the token is the same; nobody else can make one, or make one longer.
func TestSessionsGoOnWithTheToken(t *testing.T) {
	t.Parallel()
	const token = "a token"
	s := newSessions(token, time.Now)
	cookie := s.mustOpen(t)
	if !newSessions(token, time.Now).valid(cookie) {
		t.Error("the next daemon does not know the session")
	}
	for _, other := range []string{"", "another token"} {
		if newSessions(other, time.Now).valid(cookie) {
			t.Errorf("token %q knows it too", other)
		}
	}
	for _, bad := range []string{"", ".", "x", cookie + "0", "9" + cookie, cookie[:len(cookie)-1], strings.Replace(cookie, ".", "0.", 1), strings.ToUpper(cookie)} {
		if s.valid(bad) {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestLogoutIsRememberedInBoundedSpace(t *testing.T) {
	t.Parallel()
	s := newSessions("token", time.Now)
	stays := s.mustOpen(t)
	for range maxEnded {
		cookie := s.mustOpen(t)
		if s.end(cookie); s.valid(cookie) {
			t.Fatal("it goes on after the logout")
		}
		s.end(cookie + "x")
	}
	if !s.valid(stays) || len(s.ended) != maxEnded {
		t.Fatalf("%d are remembered, the session of another is valid: %t", len(s.ended), s.valid(stays))
	}
	last := s.mustOpen(t)
	if s.end(last); s.valid(last) || s.valid(stays) || len(s.ended) > maxEnded {
		t.Error("what cannot be remembered must end all")
	}
}

// Whoever looks at the answer in a browser is told what to do; programs, and the
// API, speak JSON.
func TestABrowserThatIsNotSignedInGetsAPage(t *testing.T) {
	t.Parallel()
	pages := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("page")) })
	w := newWorld(t, func(c *Config) { c.Pages = pages })
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	for name, test := range map[string]struct {
		path, accept, cookie string
		status               int
		page                 bool
	}{
		"no cookie":          {"/", browser, "", 401, true},
		"another page":       {"/history", browser, "", 401, true},
		"a session that was": {"/", browser, cookieName + "=1.x.y", 401, true},
		"a used link":        {loginPath + "?link=x", browser, "", 403, true},
		"no link":            {loginPath, browser, "", 403, true},
		"the API":            {"/api/tools", browser, "", 401, false},
		"a program":          {"/", "*/*", "", 401, false},
		"one that asks":      {"/", "application/json, text/html;q=0", "", 401, false},
		"no accept":          {"/", "", "", 401, false},
		"a link, a program":  {loginPath + "?link=x", "*/*", "", 403, false},
	} {
		r, err := http.NewRequestWithContext(w.ctx(), http.MethodGet, "http://"+w.address+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", test.accept)
		r.Header.Set("Cookie", test.cookie)
		response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		kind, want := response.Header.Get("Content-Type"), "application/json"
		if test.page {
			want = "text/html; charset=utf-8"
		}
		if response.StatusCode != test.status || kind != want || strings.Contains(string(body), "<code>toolhost console</code>") != test.page {
			t.Errorf("%s: %s, %s, %s", name, response.Status, kind, body)
		}
		if challenged := response.Header.Get("WWW-Authenticate") != ""; challenged != (test.status == 401) {
			t.Errorf("%s: challenged %v", name, challenged)
		}
	}
}

// No script is in the page, and its policy lets it have its style alone.
func TestTheSignInPageIsStrict(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"<script", "src=", "href=", " style=", "<form"} {
		if strings.Contains(string(signInPage), word) {
			t.Errorf("the page has %s", word)
		}
	}
	if !strings.HasPrefix(signInPolicy, "default-src 'none'; style-src 'sha256-") || strings.Contains(signInPolicy, "unsafe") {
		t.Errorf("policy %s", signInPolicy)
	}
}
