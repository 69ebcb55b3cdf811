package logview

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/toolhost/toolhost/client"
	"github.com/toolhost/toolhost/internal/journal"
)

// A turn that the daemon has no stream for is shown once it has one.
func TestFollowWaitsForAStream(t *testing.T) {
	var asked atomic.Int32
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) < 3 {
			w.WriteHeader(map[bool]int{true: http.StatusTooManyRequests, false: http.StatusServiceUnavailable}[asked.Load() == 1])
			fmt.Fprint(w, `{"error":{"code":"quota_exceeded","message":"too many streams","remedy":"close some"}}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "id: 1\ndata: {\"seq\":1,\"kind\":\"turn_end\",\"turnId\":\"t\"}\n\n")
	})
	shown := 0
	f := &follower{remote: remote{c}, cancel: func(error) {}, yield: func(journal.Event) bool { shown++; return true }}
	f.follow(context.Background(), "t", 0)
	f.watching.Wait()
	if shown != 1 || asked.Load() != 3 {
		t.Errorf("%d events are shown, asked %d times", shown, asked.Load())
	}
}

// A turn that cannot be read whole ends it all with the reason; one that is gone does not.
func TestFollowOfWhatCannotBeRead(t *testing.T) {
	for code, want := range map[string]string{"internal": "turn t: damaged: see the log", "not_found": "<nil>"} {
		c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "event: error\ndata: {\"error\":{\"code\":%q,\"message\":\"damaged\",\"remedy\":\"see the log\"}}\n\n", code)
		})
		ctx, cancel := context.WithCancelCause(t.Context())
		f := &follower{remote: remote{c}, cancel: cancel}
		f.follow(ctx, "t", 0)
		f.watching.Wait()
		if got := fmt.Sprint(context.Cause(ctx)); got != want {
			t.Errorf("%s: %s, want %s", code, got, want)
		}
		cancel(nil)
	}
}

// clientOf is one of a daemon that answers so.
func clientOf(t *testing.T, answer http.HandlerFunc) *client.Client {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: answer}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	c, err := client.New(client.Options{Socket: socket})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
