package main

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// hangs bounds what should take a moment.
const hangs = time.Minute

// serve answers on loopback.
func serve(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	return server.URL
}

// call runs the tool as a host would, with arguments and result as JSON.
func call(t *testing.T, ctx context.Context, in Arguments, sent *transcript) (Summary, error) {
	t.Helper()
	arguments, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := newTool(true).Run(ctx, arguments, sent.output())
	var summary Summary
	if err == nil {
		err = json.Unmarshal(raw, &summary)
	}
	return summary, err
}

func get(t *testing.T, target string) (*transcript, Summary, error) {
	t.Helper()
	var sent transcript
	summary, err := call(t, t.Context(), Arguments{URL: target}, &sent)
	return &sent, summary, err
}

func TestBodies(t *testing.T) {
	for name, test := range map[string]struct{ contentType, body, text, blob, media, charset string }{
		"plain":                   {"text/plain; charset=utf-8", "héllo\n", "héllo\n", "", "text/plain", "utf-8"},
		"JSON":                    {"application/json", `{"é":1}`, `{"é":1}`, "", "application/json", "utf-8"},
		"a suffix":                {"application/problem+json", `{}`, `{}`, "", "application/problem+json", "utf-8"},
		"Latin 1":                 {"text/plain; charset=ISO-8859-1", "h\xe9llo", "héllo", "", "text/plain", "windows-1252"},
		"Japanese":                {"text/plain; charset=shift_jis", "\x93\xfa\x96\x7b", "日本", "", "text/plain", "shift_jis"},
		"declared in HTML":        {"text/html", "<meta charset=windows-1251>\xcf\xf0", "<meta charset=windows-1251>Пр", "", "text/html", "windows-1251"},
		"declared nowhere":        {"text/html", "<p>" + strings.Repeat("a", 2000) + "é", "<p>" + strings.Repeat("a", 2000) + "é", "", "text/html", "utf-8"},
		"a header beats HTML":     {"text/html; charset=utf-8", "<meta charset=koi8-r>é", "<meta charset=koi8-r>é", "", "text/html", "utf-8"},
		"a mark":                  {"text/plain", "\xef\xbb\xbfé", "é", "", "text/plain", "utf-8"},
		"a mark beats the header": {"text/plain; charset=utf-8", "\xff\xfeh\x00i\x00", "hi", "", "text/plain", "utf-16le"},
		"UTF-16":                  {"text/plain; charset=utf-16be", "\x00h\x00i", "hi", "", "text/plain", "utf-16be"},
		"no UTF-8":                {"text/plain", "a\xffb\xc3", "a\uFFFDb\uFFFD", "", "text/plain", "utf-8"},
		"an unknown charset":      {"text/plain; charset=klingon", "é", "é", "", "text/plain", "utf-8"},
		"no type":                 {"", "<html><p>hi", "<html><p>hi", "", "text/html", "utf-8"},
		"a broken type":           {"text/plain; ;;", "hi", "hi", "", "text/plain", "utf-8"},
		"much":                    {"text/plain; charset=utf-8", "a" + strings.Repeat("é日", 50000), "a" + strings.Repeat("é日", 50000), "", "text/plain", "utf-8"},
		"much Latin 1":            {"text/plain; charset=latin1", "a" + strings.Repeat("\xe9", 100000), "a" + strings.Repeat("é", 100000), "", "text/plain", "windows-1252"},
		"nothing":                 {"text/plain", "", "", "", "text/plain", "utf-8"},
		"a picture":               {"image/png", "\x89PNG\r\n", "", "image/png \x89PNG\r\n", "image/png", ""},
		"a picture without type":  {"", "\x89PNG\r\n\x1a\n", "", "image/png \x89PNG\r\n\x1a\n", "image/png", ""},
		"a picture called text":   {"text/plain", "\x89PNG\x00\x01", "", "application/octet-stream \x89PNG\x00\x01", "application/octet-stream", ""},
	} {
		target := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			if test.contentType != "" {
				w.Header().Set("Content-Type", test.contentType)
			}
			_, _ = io.WriteString(w, test.body)
		})
		sent, summary, err := get(t, target)
		if err != nil || sent.text.String() != test.text || strings.Join(sent.blobs, "|") != test.blob {
			t.Errorf("%s: %q and %q, %v", name, sent.text.String(), sent.blobs, err)
		}
		want := Summary{URL: target, Status: 200, ContentType: test.media, Charset: test.charset, Bytes: int64(len(test.body))}
		if summary != want {
			t.Errorf("%s: %+v, want %+v", name, summary, want)
		}
	}
}

// What has come is shown before the rest is there, whole characters only.
func TestStreams(t *testing.T) {
	shown := make(chan string)
	target := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for _, step := range []struct{ write, want string }{{"one \xc3", "one "}, {"\xa9 two", "é two"}, {"", ""}} {
			_, _ = io.WriteString(w, step.write)
			w.(http.Flusher).Flush()
			if step.want == "" {
				break
			}
			select {
			case got := <-shown:
				if got != step.want {
					t.Errorf("%q is shown, want %q", got, step.want)
				}
			case <-time.After(hangs):
				t.Errorf("%q is not shown", step.want)
			}
		}
	})
	sent := transcript{onText: func(text string) { shown <- text }}
	summary, err := call(t, t.Context(), Arguments{URL: target}, &sent)
	if err != nil || sent.text.String() != "one é two" || summary.Bytes != 10 {
		t.Errorf("%q, %+v, %v", sent.text.String(), summary, err)
	}
}

func TestCutShort(t *testing.T) {
	target := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "half of it")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the time is over")
	sent := transcript{onText: func(string) { cancel(cause) }}
	if _, err := call(t, ctx, Arguments{URL: target}, &sent); !errors.Is(err, cause) || sent.text.String() != "half of it" {
		t.Errorf("%q, %v", sent.text.String(), err)
	}
}

func TestSize(t *testing.T) {
	compressed := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		for range 100 {
			if _, err := io.WriteString(z, strings.Repeat("a", 1<<20)); err != nil {
				return // the client has had enough
			}
		}
		_ = z.Close()
	}
	exact := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("a", 5000)) }
	picture := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "image/png")
		_, _ = io.WriteString(w, strings.Repeat("a", 4<<20))
	}
	for name, test := range map[string]struct {
		handle    http.HandlerFunc
		max, want int64
		truncated bool
		err       string
	}{
		"a bomb":                    {compressed, 0, defaultBytes, true, ""},
		"exactly":                   {exact, 5000, 5000, false, ""},
		"one more":                  {exact, 4999, 4999, true, ""},
		"too large a blob":          {picture, 1000, 0, false, "more than 1000 bytes"},
		"larger than a blob may be": {picture, maxBytes, 0, false, "more than 3145728 bytes"},
		"out of range":              {exact, maxBytes + 1, 0, false, "16777216"},
		"negative":                  {exact, -1, 0, false, "out of range"},
	} {
		var sent transcript
		summary, err := call(t, t.Context(), Arguments{URL: serve(t, test.handle), MaxBytes: test.max}, &sent)
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) || len(sent.blobs) > 0 {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || int64(sent.text.Len()) != test.want || summary.Bytes != test.want || summary.Truncated != test.truncated {
			t.Errorf("%s: %d bytes, %+v, %v", name, sent.text.Len(), summary, err)
		}
	}
}

func TestRedirects(t *testing.T) {
	target := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var n int
		switch _, err := fmt.Sscanf(r.URL.Path, "/%d", &n); {
		case r.URL.Path == "/file":
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		case r.URL.Path == "/user":
			http.Redirect(w, r, "http://a:secret@"+r.Host+"/0", http.StatusFound)
		case err == nil && n > 0:
			http.Redirect(w, r, fmt.Sprintf("/%d", n-1), http.StatusFound)
		default:
			_, _ = io.WriteString(w, "here")
		}
	})
	sent, summary, err := get(t, target+"/10")
	if err != nil || sent.text.String() != "here" || summary.URL != target+"/0" || summary.Redirects != 10 {
		t.Errorf("%q, %+v, %v", sent.text.String(), summary, err)
	}
	for path, want := range map[string]string{"/11": "more than 10 redirects", "/file": "neither http", "/user": "user name"} {
		if _, _, err := get(t, target+path); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// The body of a refusal says why.
func TestStatus(t *testing.T) {
	target := serve(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no such page", http.StatusNotFound) })
	sent, _, err := get(t, target)
	if err == nil || !strings.Contains(err.Error(), "404 Not Found") || sent.text.String() != "no such page\n" {
		t.Errorf("%q, %v", sent.text.String(), err)
	}
}

func TestTLS(t *testing.T) {
	insecure := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "plain") })
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/down" {
			http.Redirect(w, r, insecure, http.StatusFound)
		}
		_, _ = io.WriteString(w, r.Proto)
	}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	if _, _, err := get(t, server.URL); err == nil || !strings.Contains(err.Error(), "not to be trusted") {
		t.Errorf("an unknown certificate: %v", err)
	}
	f := &fetcher{client: newClient(true)}
	transport := f.client.Transport.(*http.Transport)
	transport.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	transport.TLSClientConfig.NextProtos = nil
	var sent transcript
	if _, err := f.fetch(t.Context(), Arguments{URL: server.URL}, sent.output()); err != nil || sent.text.String() != "HTTP/2.0" {
		t.Errorf("%q, %v", sent.text.String(), err)
	}
	if _, err := f.fetch(t.Context(), Arguments{URL: server.URL + "/down"}, sent.output()); err == nil || !strings.Contains(err.Error(), "not secured") {
		t.Errorf("a redirect to http: %v", err)
	}
}

func TestMistakesAreExplained(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	odd := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Encoding", "br") })
	cut := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "ten bytes.")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	for target, want := range map[string]string{
		"": "neither http", "example.com": "neither http", "file:///etc/passwd": "neither http", "http://": "no host", "http://a:b@c/": "user name", "http://[::1": "url is not one", "http://a b/": "url is not one",
		"http://" + closed.Addr().String(): "connection refused", "http://no-such-host.invalid/": "no address of no-such-host.invalid",
		odd: `"br"`, cut: "unexpected EOF",
	} {
		_, _, err := get(t, target)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %s", target, err, want)
		}
	}
}

// By default the tool keeps away from what is not public, whatever name leads
// there.
func TestPrivate(t *testing.T) {
	asked := false
	target := serve(t, func(http.ResponseWriter, *http.Request) { asked = true })
	parsed, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]"} {
		arguments := fmt.Sprintf(`{"url":"http://%s:%s/"}`, host, parsed.Port())
		_, err := newTool(false).Run(t.Context(), []byte(arguments), (&transcript{}).output())
		if err == nil || !strings.Contains(err.Error(), "FETCH_PRIVATE=allow") {
			t.Errorf("%s: %v", host, err)
		}
	}
	if asked {
		t.Error("the server was asked")
	}
}

func TestCheckAddress(t *testing.T) {
	for address, private := range map[string]bool{
		"93.184.216.34:80": false, "[2606:2800:220:1::1]:443": false, "172.15.0.1:1": false, "172.32.0.1:1": false, "[::ffff:8.8.8.8]:1": false,
		"127.0.0.1:80": true, "10.1.2.3:1": true, "172.16.0.1:1": true, "192.168.1.1:1": true, "169.254.169.254:80": true, "100.64.0.1:1": true, "0.0.0.0:1": true, "255.255.255.255:1": true, "224.0.0.1:1": true, "198.18.1.1:443": true,
		"[::1]:1": true, "[::]:1": true, "[fe80::1%eth0]:1": true, "[fd00:ec2::254]:80": true, "[ff02::1]:1": true, "[::ffff:10.0.0.1]:1": true, "[64:ff9b::7f00:1]:1": true, "[2002:7f00:1::]:1": true, "nonsense": true,
	} {
		if err := checkAddress(address, func() bool { return true }); (err != nil) != private {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// Where only names are granted, what stands for them is no private address.
func TestCheckAddressOfGrantedNames(t *testing.T) {
	for address, private := range map[string]bool{"198.18.1.1:443": false, "127.0.0.1:80": true, "10.1.2.3:1": true} {
		if err := checkAddress(address, func() bool { return false }); (err != nil) != private {
			t.Errorf("%s: %v", address, err)
		}
	}
}
