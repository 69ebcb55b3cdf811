package httpapi

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

const metricsToken = "metrics-token-of-at-least-32-characters"

// scrape asks for a path over TCP.
func (w *world) scrape(path, authorization string) (status int, body string) {
	w.t.Helper()
	q, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, "http://"+w.address+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if authorization != "" {
		q.Header.Set("Authorization", authorization)
	}
	response, err := http.DefaultClient.Do(q)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	raw, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(raw)
}

// Metrics are for whoever may use the API, and for the token of their own, which
// opens nothing else.
func TestMetrics(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) {
		c.MetricsToken = metricsToken
		c.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", exposition)
			_, _ = io.WriteString(w, "up 1\n")
		})
	})
	for _, c := range []struct {
		path, authorization string
		status              int
	}{
		{"/metrics", "Bearer " + metricsToken, 200},
		{"/metrics", "bearer " + metricsToken, 200},
		{"/metrics", bearer, 200},
		{"/metrics", "", 401},
		{"/metrics", "Basic " + metricsToken, 401},
		{"/metrics", "Bearer ", 401},
		{"/metrics?x=1", "Bearer " + metricsToken, 400},
		{"/metrics/", "Bearer " + metricsToken, 404},
		{"/api/tools", "Bearer " + metricsToken, 403},
		{"/api/openapi.json", "Bearer " + metricsToken, 403},
	} {
		if status, body := w.scrape(c.path, c.authorization); status != c.status || status == 200 && body != "up 1\n" {
			t.Errorf("%s with %q: %d, %s", c.path, c.authorization, status, body)
		}
	}
}

// One scrape too many is refused as the API refuses, and only while the others are
// being made: whoever doesn't read has no part in it.
func TestTooManyScrapes(t *testing.T) {
	t.Parallel()
	began, goOn := make(chan struct{}, maxScrapes), make(chan struct{})
	large := strings.Repeat("# a line that a client does not read\n", 200_000)
	w := newWorld(t, func(c *Config) {
		c.Metrics = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case began <- struct{}{}:
				<-goOn
			default:
			}
			w.Header().Set("Content-Type", exposition)
			_, _ = io.WriteString(w, large)
		})
	})
	for range maxScrapes { // of clients that read nothing
		c, err := net.Dial("tcp", w.address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: "+w.address+"\r\nAuthorization: "+bearer+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	for range maxScrapes {
		<-began
	}
	for range maxScrapes {
		began <- struct{}{} // no other is held up
	}
	status, body := w.send("GET", "/metrics", "") // which is held to the document
	if status != 503 || !strings.Contains(body, `"code":"busy"`) {
		t.Errorf("%d %.200s", status, body)
	}
	close(goOn)
	until(t, "others are served again", func() bool {
		status, body := w.scrape("/metrics", bearer)
		return status == 200 && body == large
	})
}

// What cannot be gathered is told of as any error is, and nothing is kept that is
// too large.
func TestFailedMetrics(t *testing.T) {
	t.Parallel()
	for name, serve := range map[string]http.HandlerFunc{
		"error": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusInternalServerError) },
		"large": func(w http.ResponseWriter, _ *http.Request) {
			for piece := make([]byte, maxExpositionBytes/4); ; {
				if _, err := w.Write(piece); err != nil {
					return
				}
			}
		},
	} {
		w := newWorld(t, func(c *Config) { c.Metrics = serve })
		if status, body := w.send("GET", "/metrics", ""); status != 500 || !strings.Contains(body, `"code":"internal"`) {
			t.Errorf("%s: %d %.200s", name, status, body)
		}
	}
}

// Without metrics there are none, and an empty token is nobody's.
func TestNoMetrics(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	if status, _ := w.scrape("/metrics", bearer); status != 404 {
		t.Errorf("without metrics: %d", status)
	}
	if status, _ := w.scrape("/metrics", "Bearer "); status != 401 {
		t.Errorf("with an empty token: %d", status)
	}
}
