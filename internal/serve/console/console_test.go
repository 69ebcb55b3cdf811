package console

import (
	"bufio"
	"bytes"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"
)

func get(t *testing.T, method, target string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	var b bytes.Buffer
	if _, err := b.ReadFrom(r.Body); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var reference = regexp.MustCompile(`(?:href|src)="(/assets/[^"]+)"`)

// Everything that the index names is there, and is kept for ever under a name
// that changes with what it holds; the index itself is asked for anew.
func TestPagesAreCached(t *testing.T) {
	index := get(t, "GET", "/")
	if index.StatusCode != http.StatusOK || index.Header.Get("Cache-Control") != "no-cache" || index.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("index: %s, %v", index.Status, index.Header)
	}
	names := reference.FindAllStringSubmatch(body(t, index), -1)
	if len(names) < 8 {
		t.Fatalf("the index names %q", names)
	}
	for _, name := range append(names, []string{"", "/"}) {
		r := get(t, "GET", name[1])
		kept := strings.Contains(r.Header.Get("Cache-Control"), "immutable")
		if r.StatusCode != http.StatusOK || kept != (name[1] != "/") || r.Header.Get("Content-Type") == "application/octet-stream" {
			t.Errorf("%s: %s, %v", name[1], r.Status, r.Header)
		}
		if again := get(t, "GET", name[1], "If-None-Match", r.Header.Get("ETag")); again.StatusCode != http.StatusNotModified || body(t, again) != "" {
			t.Errorf("%s again: %s", name[1], again.Status)
		}
		if head := get(t, "HEAD", name[1]); head.StatusCode != http.StatusOK || body(t, head) != "" {
			t.Errorf("HEAD %s: %s", name[1], head.Status)
		}
	}
}

func TestOnlyPagesAreServed(t *testing.T) {
	for target, want := range map[string]int{
		"/index.html": 404, "/static/index.html": 404, "/assets/": 404, "/assets/0/js/main.js": 404, "/favicon.ico": 404, "/live": 404,
		"/assets/../console.go": 404, "//": 404,
	} {
		if r := get(t, "GET", "http://localhost"+target); r.StatusCode != want || r.Header.Get("Content-Security-Policy") != policy {
			t.Errorf("%s: %s, %v", target, r.Status, r.Header)
		}
	}
	if r := get(t, "POST", "/"); r.StatusCode != http.StatusMethodNotAllowed || r.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %s, %v", r.Status, r.Header)
	}
}

func TestPolicyIsStrict(t *testing.T) {
	r := get(t, "GET", "/")
	for name, want := range map[string]string{
		"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	for _, word := range []string{"unsafe", "*", "http:", "https:"} {
		if strings.Contains(policy, word) {
			t.Errorf("the policy says %s", word)
		}
	}
}

// forbidden is what would make markup or code out of data, or fetch from
// elsewhere.
var forbidden = regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|createContextualFragment|setHTML|srcdoc|javascript:|https?://`)

// allowed are names that look like addresses, but are not fetched.
var allowed = strings.NewReplacer("http://www.w3.org/2000/svg", "")

const maxLines = 400

func TestSourcesKeepTheRules(t *testing.T) {
	err := fs.WalkDir(static, "static", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		raw, err := fs.ReadFile(static, name)
		if err != nil {
			return err
		}
		lines := 0
		for scan := bufio.NewScanner(bytes.NewReader(raw)); scan.Scan(); {
			lines++
			if found := forbidden.FindString(allowed.Replace(scan.Text())); found != "" {
				t.Errorf("%s:%d: %s", name, lines, found)
			}
		}
		if lines > maxLines {
			t.Errorf("%s has %d lines, over %d", name, lines, maxLines)
		}
		if page := path.Ext(name) == ".html"; page && regexp.MustCompile(`(?i)<style|<script[^>]*>[^<]|\son\w+=|\sstyle=`).Match(raw) {
			t.Errorf("%s: there is a script or a style in the page itself", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
