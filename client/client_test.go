package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/toolhost/toolhost/api"
)

// daemon plays one.
func daemon(t *testing.T, serve http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	c, err := New(Options{URL: server.URL, Token: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestWrongOptions(t *testing.T) {
	for _, o := range []Options{
		{},
		{Socket: "/x", URL: "http://127.0.0.1:1", Token: "x"},
		{URL: "http://127.0.0.1:1"},
		{URL: "127.0.0.1:1", Token: "x"},
		{URL: "ftp://127.0.0.1:1", Token: "x"},
		{URL: "http://127.0.0.1:1/api?x", Token: "x"},
		{URL: "http://me:pw@127.0.0.1:1", Token: "x"},
	} {
		if c, err := New(o); err == nil {
			t.Errorf("%+v: %+v", o, c)
		}
	}
}

func TestNobodyThere(t *testing.T) {
	c, err := New(Options{Socket: t.TempDir() + "/none.sock"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Active(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot reach the daemon") || !strings.Contains(err.Error(), "none.sock") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("changed my mind")
	cancel(why)
	if _, err := c.Active(ctx); !errors.Is(err, why) {
		t.Errorf("error %v", err)
	}
}

func TestErrorsAreTold(t *testing.T) {
	c := daemon(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("header %v", r.Header)
		}
		switch r.URL.Path {
		case "/api/turns/a%2Fb/abort":
			t.Errorf("the path was not escaped")
		case "/api/turns/a/b/abort":
			if r.URL.EscapedPath() != "/api/turns/a%2Fb/abort" {
				t.Errorf("path %s", r.URL.EscapedPath())
			}
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(api.Failure{Error: api.Error{Code: "not_found", Message: "no turn", Remedy: "look elsewhere"}})
		case "/api/tools":
			http.Redirect(w, r, "http://evil.example/", http.StatusFound)
		default:
			http.Error(w, "<html>", http.StatusBadGateway)
		}
	})
	err := c.Abort(t.Context(), "a/b")
	if !IsNotFound(err) || err.Error() != "no turn: look elsewhere" {
		t.Errorf("error %v", err)
	}
	if _, err := c.Active(t.Context()); err == nil || IsNotFound(err) || !strings.Contains(err.Error(), "502") {
		t.Errorf("error %v", err)
	}
	if _, err := c.Tools(t.Context()); err == nil || !strings.Contains(err.Error(), "302") {
		t.Errorf("a redirect was followed: %v", err)
	}
}

// Streams come in pieces of any form that the standard allows.
func TestFrames(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	c := daemon(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, ": comment\n\nevent: lonely\n\nid: 1\nevent:tool_output\ndata:{\"seq\":1,\ndata: \"kind\":\"tool_output\"}\n\n")
		fmt.Fprint(w, "event: gap\r\ndata: {\"turnId\":\"t\",\"fromSeq\":2,\"toSeq\":5}\r\n\r\nretry: 1\n\n")
		fmt.Fprintf(w, "data: {\"seq\":6,\"kind\":\"turn_end\",\"message\":%q}\n\ndata: {\"seq\":7", long)
	})
	s, err := c.Open(t.Context(), api.TurnSpec{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var seqs []int64
	for {
		e, err := s.Next()
		if errors.Is(err, io.EOF) {
			break // what is not whole is nothing
		}
		if err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, e.Seq)
		if (e.Gap != nil) != (e.Seq == 5) || e.Seq == 6 && e.Message != long {
			t.Errorf("event %+v", e)
		}
	}
	if !slices.Equal(seqs, []int64{1, 5, 6}) {
		t.Errorf("seqs %v", seqs)
	}
}

// A watcher whose connection breaks goes on where it was.
func TestWatchConnectsAgain(t *testing.T) {
	var lasts []string
	c := daemon(t, func(w http.ResponseWriter, r *http.Request) {
		last := r.Header.Get("Last-Event-ID")
		lasts = append(lasts, last)
		w.Header().Set("Content-Type", "text/event-stream")
		if last == "" {
			fmt.Fprint(w, "data: {\"seq\":1}\n\ndata: {\"seq\":2}\n\ndata: {\"se")
			return
		}
		fmt.Fprint(w, "data: {\"seq\":3,\"kind\":\"turn_end\"}\n\n")
	})
	var seqs []int64
	if err := c.Watch(t.Context(), "t", 0, func(e api.Record) bool { seqs = append(seqs, e.Seq); return true }); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(seqs, []int64{1, 2, 3}) || !slices.Equal(lasts, []string{"", "2"}) {
		t.Errorf("seqs %v, Last-Event-ID %q", seqs, lasts)
	}
}

// A watcher that cannot connect at all hears why; one that could waits for the daemon.
func TestWatchThatCannotConnect(t *testing.T) {
	show := func(api.Record) bool { return true }
	nowhere, err := New(Options{Socket: t.TempDir() + "/none"})
	if err != nil {
		t.Fatal(err)
	}
	if err := nowhere.Watch(t.Context(), "t", 0, show); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	streams := 0
	c := daemon(t, func(w http.ResponseWriter, r *http.Request) {
		if streams++; streams == 2 {
			http.Error(w, "a proxy's word", http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"seq\":%d}\n\n", streams)
		if streams == 3 {
			fmt.Fprint(w, "data: {\"seq\":4,\"kind\":\"turn_end\"}\n\n")
		}
	})
	if err := c.Watch(t.Context(), "t", 0, show); err != nil || streams != 3 {
		t.Errorf("%d streams, %v", streams, err)
	}
}

// An address that takes connections and never says a word of TLS is given up.
func TestAnAddressThatSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := New(Options{URL: "https://192.0.2.1", Token: "t"})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.http.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, theirs) }()
			return ours, nil
		}
		if _, err := c.Active(t.Context()); err == nil || !strings.Contains(err.Error(), "TLS handshake timeout") {
			t.Errorf("error %v", err)
		}
	})
}

// Where nothing is left behind the last event, the turn is over if it is not active any
// more; else its stream goes on.
func TestWatchBehindTheEnd(t *testing.T) {
	for _, test := range []struct {
		name   string
		status int
		want   int32
	}{{"over", http.StatusNotFound, 1}, {"active", http.StatusOK, 2}} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			var streams atomic.Int32
			c := daemon(t, func(w http.ResponseWriter, r *http.Request) {
				if !strings.HasSuffix(r.URL.Path, "/events") {
					w.WriteHeader(test.status)
					fmt.Fprint(w, `{"turnId":"t","error":{"code":"not_found","message":"m","remedy":"r"}}`)
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				switch n := streams.Add(1); {
				case n > test.want:
					cancel(errors.New("the stream is asked for again"))
				case n == 2:
					fmt.Fprint(w, "data: {\"seq\":8,\"kind\":\"turn_end\"}\n\n")
				}
			})
			if err := c.Watch(ctx, "t", 7, func(api.Record) bool { return true }); err != nil || streams.Load() != test.want {
				t.Errorf("%d streams, %v", streams.Load(), err)
			}
		})
	}
}

func TestABatchThatBreaksOff(t *testing.T) {
	c := daemon(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/turns/json/calls" {
			fmt.Fprint(w, `{"results":[`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"seq\":1}\n\n")
		if r.URL.Path == "/api/turns/refused/calls" {
			fmt.Fprint(w, "event: error\ndata: {\"error\":{\"code\":\"conflict\",\"message\":\"m\",\"remedy\":\"r\"}}\n\n")
		}
	})
	if results, err := c.Run(t.Context(), "json", nil); err == nil {
		t.Errorf("results %v", results)
	}
	if results, err := c.RunEvents(t.Context(), "stream", nil, func(api.Record) {}); err == nil || !strings.Contains(err.Error(), "broke off") {
		t.Errorf("results %v, %v", results, err)
	}
	_, err := c.RunEvents(t.Context(), "refused", nil, func(api.Record) {})
	if refused, ok := errors.AsType[*api.Error](err); !ok || refused.Code != "conflict" {
		t.Errorf("error %v", err)
	}
}

func TestFilterQuery(t *testing.T) {
	if got := query(api.Filter{}); got != "" {
		t.Errorf("%q", got)
	}
	if got := query(api.Filter{TurnID: "a&b", Tool: "x y", Limit: 5}); got != "?limit=5&tool=x+y&turn=a%26b" {
		t.Errorf("%q", got)
	}
}

// Results are those that the library gives: nothing structured is not null.
func TestResultsAreAsMade(t *testing.T) {
	c := daemon(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"results":[{"callId":"1","structured":null},{"callId":"2","structured":{"a":1}}]}`)
	})
	results, err := c.Run(t.Context(), "t", nil)
	if err != nil || len(results) != 2 || results[0].Structured != nil || string(results[1].Structured) != `{"a":1}` {
		t.Errorf("%v, %v", results, err)
	}
}

// What only reads is asked for once more where the connection is lost, and nothing else.
func TestReadingIsTriedAgain(t *testing.T) {
	var asked atomic.Int32
	c := daemon(t, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprint(w, `{"calls":[]}`)
	})
	if _, err := c.Active(t.Context()); err != nil || asked.Load() != 2 {
		t.Errorf("%v, asked %d times", err, asked.Load())
	}
	asked.Store(0)
	if _, err := c.Run(t.Context(), "t", nil); err == nil || asked.Load() != 1 {
		t.Errorf("%v, asked %d times", err, asked.Load())
	}
}

// A daemon that goes away in mid-request was there, other than one that is not.
func TestTheDaemonGoesAway(t *testing.T) {
	c := daemon(t, func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) })
	if _, err := c.Run(t.Context(), "t", nil); err == nil || !strings.HasPrefix(err.Error(), "the connection to the daemon was lost: ") {
		t.Errorf("%v", err)
	}
	nowhere, err := New(Options{Socket: t.TempDir() + "/none"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nowhere.Active(t.Context()); !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "cannot reach the daemon: ") {
		t.Errorf("%v", err)
	}
}
