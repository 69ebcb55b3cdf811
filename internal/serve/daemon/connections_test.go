package daemon

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// Connections on which nobody authenticates, or streams of one client, keep nobody else out.
func TestConnectionsLeaveRoomForOthers(t *testing.T) {
	const files = 1024
	t.Parallel()
	w := newWorld(t, "")
	w.Listen = "127.0.0.1:0"
	d := w.command()
	bounded := exec.Command("sh", "-c", fmt.Sprintf(`ulimit -n %d; exec "$0"`, files), os.Args[0])
	bounded.Env, bounded.Stderr = d.cmd.Env, d.cmd.Stderr
	d.cmd = bounded
	d.start().waitReady()
	alice := bearerOf(t, d, "alice")
	url := strings.TrimPrefix(d.tcp(), "http://")
	ask := func(network, address, path, token string) {
		t.Helper()
		c, err := net.Dial(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_, _ = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: %s\r\n\r\n", path, token)
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
		_, _ = io.ReadFull(c, make([]byte, 12)) // it may be shut
	}
	turn := w.begin()
	for _, flood := range []struct{ network, address, path, token string }{
		{"tcp", url, "/api/health", ""},
		{"tcp", url, "/api/tools", "Bearer wrong"},
		{"unix", d.Socket, "/api/turns/" + turn + "/events", ""},
	} {
		for range files {
			ask(flood.network, flood.address, flood.path, flood.token)
		}
		for range 3 {
			if result := alice.mustRun(alice.begin(), "work", workArgs{Text: "hello"}); !strings.Contains(saidBy(result), "hello") {
				t.Errorf("behind %s: %+v", flood.path, result)
			}
			if err := w.client.Ready(wait.Context(t)); err != nil {
				t.Errorf("behind %s: %v", flood.path, err)
			}
		}
	}
	if !strings.Contains(d.log.text(), "too many connections are open") {
		t.Error("its log does not say that connections were closed")
	}
}
