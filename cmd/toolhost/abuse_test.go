package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// zeros is a body without an end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

// onWire sends a request as it is written and gives the answer.
func (d *served) onWire(t *testing.T, head string, body io.Reader) (*http.Response, string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(d.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(wait.Bound))
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, err := io.WriteString(conn, head)
		if err == nil {
			_, _ = io.Copy(conn, body) // the daemon hangs up on what it does not want
		}
	}()
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%.200q: no answer: %v", head, err)
	}
	raw, _ := io.ReadAll(response.Body)
	_ = conn.Close()
	<-sent
	return response, string(raw)
}

// TestAbuse does to a real daemon what its HTTP API must stand; the finer points
// are tested beside the API.
func TestAbuse(t *testing.T) {
	t.Parallel()
	d := serve(t, remoteTools)
	raw, err := os.ReadFile(d.token)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Begin(wait.Context(t), api.TurnSpec{TurnID: "t"}); err != nil {
		t.Fatal(err)
	}
	token := "Authorization: Bearer " + strings.TrimSpace(string(raw)) + "\r\n"
	host := "Host: " + strings.TrimPrefix(d.url, "http://") + "\r\n"
	asJSON := "Content-Type: application/json\r\n"
	deep := `{"calls":[{"id":"1","tool":"greet","arguments":` + strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000) + "}]}"
	length := func(body string) string { return fmt.Sprintf("Content-Length: %d\r\n", len(body)) }
	twice := `{"agentId":"a","agentId":"b"}`
	for _, test := range []struct {
		name, request, headers string
		body                   io.Reader
		status                 int
		code                   string
	}{
		{"no token", "GET /api/tools", host, nil, 401, "unauthorized"},
		{"wrong token", "GET /api/tools", host + "Authorization: Bearer wrong\r\n", nil, 401, "unauthorized"},
		{"token in the URL", "GET /api/tools?token=" + strings.TrimSpace(string(raw)), host, nil, 401, "unauthorized"},
		{"foreign host", "GET /api/tools", "Host: evil.example\r\n" + token, nil, 403, "bad_host"},
		{"foreign host, health", "GET /api/health", "Host: evil.example\r\n", nil, 403, "bad_host"},
		{"foreign origin", "POST /api/turns/t/abort", host + token + "Origin: https://evil.example\r\n", nil, 403, "bad_origin"},
		{"no origin", "POST /api/turns/t/abort", host + token + "Origin: null\r\n", nil, 403, "bad_origin"},
		{"text/plain", "POST /api/turns", host + token + "Content-Type: text/plain\r\nContent-Length: 2\r\n", strings.NewReader("{}"), 415, "unsupported_media_type"},
		{"1 GiB", "POST /api/turns", host + token + asJSON + "Content-Length: 1073741824\r\n", io.LimitReader(zeros{}, 1<<30), 413, "too_large"},
		{"1 GiB, unannounced", "POST /api/turns", host + token + asJSON + "Transfer-Encoding: chunked\r\n", chunks(1 << 30), 413, "too_large"},
		{"1 GiB, no token", "POST /api/turns", host + asJSON + "Content-Length: 1073741824\r\n", io.LimitReader(zeros{}, 1<<30), 401, "unauthorized"},
		{"10,000 deep", "POST /api/turns/t/calls", host + token + asJSON + length(deep), strings.NewReader(deep), 400, "bad_json"},
		{"duplicate keys", "POST /api/turns", host + token + asJSON + length(twice), strings.NewReader(twice), 400, "bad_json"},
		{"traversal", "GET /api/turns/../../../etc/passwd", host + token, nil, 404, "not_found"},
		{"encoded traversal", "GET /api/history/turns/..%2f..%2f..%2fetc%2fpasswd/events", host + token, nil, 404, "not_found"},
		{"lines in an id", "GET /api/turns/a%0d%0aSet-Cookie:%20x=y", host + token, nil, 404, "not_found"},
		{"lines in a call's id", "POST /api/turns/t/abort-tool/a%0d%0aX-Evil:%201", host + token, nil, 404, "not_found"},
		{"unknown turn", "POST /api/turns/nosuch/abort", host + token, nil, 404, "not_found"},
		{"unknown call", "POST /api/turns/t/abort-tool/nosuch", host + token, nil, 404, "not_found"},
		{"unknown question", "POST /api/interactions/nosuch/answer", host + token, nil, 404, "not_found"},
		{"abort", "POST /api/turns/t/abort", host + token, nil, 200, ""},
		{"abort again", "POST /api/turns/t/abort", host + token, nil, 200, ""},
	} {
		body := test.body
		if body == nil {
			body = strings.NewReader("")
		}
		response, answer := d.onWire(t, test.request+" HTTP/1.1\r\n"+test.headers+"Connection: close\r\n\r\n", body)
		if response.StatusCode != test.status || response.Header.Get("Set-Cookie")+response.Header.Get("X-Evil") != "" {
			t.Errorf("%s: %d %v %.300s", test.name, response.StatusCode, response.Header, answer)
		}
		checkAnswer(t, test.name, test.code, answer)
	}
	if err := d.Ready(wait.Context(t)); err != nil {
		t.Errorf("after all that: %v", err)
	}
	if peak := peakBytes(t, d.pid); peak > 512<<20 { // half of what was sent at once; the race detector takes its share
		t.Errorf("the daemon has used %d bytes", peak)
	}
	if err := d.End(wait.Context(t), "t"); err != nil {
		t.Error(err)
	}
}

// checkAnswer wants an error that says what is wrong and what to do, or none.
func checkAnswer(t *testing.T, name, code, answer string) {
	t.Helper()
	var failure api.Failure
	if err := json.Unmarshal([]byte(answer), &failure); err != nil {
		t.Errorf("%s: answered %.300q: %v", name, answer, err)
		return
	}
	e := failure.Error
	if e.Code != code || code != "" && (e.Message == "" || e.Remedy == "" || strings.ContainsAny(e.Message, "\r\n")) {
		t.Errorf("%s: %+v", name, e)
	}
}

// chunks is a body in chunks (RFC 9112, 7.1), of a size that its head does not
// tell.
func chunks(size int64) io.Reader {
	read, write := io.Pipe()
	go func() {
		chunk := fmt.Sprintf("%x\r\n%s\r\n", 64<<10, strings.Repeat("0", 64<<10))
		for range size / (64 << 10) {
			if _, err := io.WriteString(write, chunk); err != nil {
				return
			}
		}
		_, _ = io.WriteString(write, "0\r\n\r\n")
		_ = write.Close()
	}()
	return closedAfter{read}
}

// closedAfter is a pipe whose writer ends with its last reader.
type closedAfter struct{ *io.PipeReader }

func (c closedAfter) WriteTo(w io.Writer) (int64, error) {
	n, err := io.Copy(w, struct{ io.Reader }{c.PipeReader})
	_ = c.Close()
	return n, err
}

var peakLine = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peakBytes is the most memory that a process has had (proc_pid_status(5)).
func peakBytes(t *testing.T, pid int) int64 {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	found := peakLine.FindSubmatch(raw)
	if err != nil || found == nil {
		t.Fatalf("no peak of %d: %v", pid, err)
	}
	kilobytes, _ := strconv.ParseInt(string(found[1]), 10, 64)
	return kilobytes << 10
}
