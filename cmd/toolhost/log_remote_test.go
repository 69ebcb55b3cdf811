package main

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
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) < 3 {
			w.WriteHeader(map[bool]int{true: http.StatusTooManyRequests, false: http.StatusServiceUnavailable}[asked.Load() == 1])
			fmt.Fprint(w, `{"error":{"code":"quota_exceeded","message":"too many streams","remedy":"close some"}}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "id: 1\ndata: {\"seq\":1,\"kind\":\"turn_end\",\"turnId\":\"t\"}\n\n")
	})}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	c, err := client.New(client.Options{Socket: socket})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	shown := 0
	f := &remoteFollower{remoteRecord: remoteRecord{&remote{Client: c}}, cancel: func() {}, yield: func(journal.Event) bool { shown++; return true }}
	f.follow(context.Background(), "t", 0)
	f.watching.Wait()
	if shown != 1 || asked.Load() != 3 {
		t.Errorf("%d events are shown, asked %d times", shown, asked.Load())
	}
}
