package console

import (
	"context"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/toolhost/toolhost/client"
	"github.com/toolhost/toolhost/internal/access/tokens"
	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/internal/serve/httpapi"
	"github.com/toolhost/toolhost/turn"
)

const testToken = "test-token-of-at-least-32-characters"

// daemon is one that can be killed and started again, at the same addresses and
// with the same journal. What it runs is played by fakes.
type daemon struct {
	t   *testing.T
	dir string
	// open is an address that lets everybody in, guarded one as daemons have it.
	open, guarded string

	mu      sync.Mutex
	fakes   *fakes
	journal *journal.Journal
	reader  *journal.Reader
	turns   *turn.Manager
	server  *httpapi.Server
	http    []*http.Server // nil while it is not there
	conns   []net.Conn     // every one so far at guarded
	killed  *atomic.Bool   // of this start: nothing is said any more
}

func newDaemon(t *testing.T) *daemon {
	d := &daemon{t: t, dir: t.TempDir(), open: "127.0.0.1:0", guarded: "127.0.0.1:0"}
	if err := d.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.kill(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func (d *daemon) start() (err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.http != nil {
		return errors.New("it runs already")
	}
	state := filepath.Join(d.dir, "state")
	if d.journal, err = journal.Open(state, journal.Options{}); err != nil {
		return err
	}
	if d.reader, err = journal.OpenReader(state); err != nil {
		return err
	}
	d.killed = new(atomic.Bool)
	d.fakes = &fakes{held: map[string]chan struct{}{}}
	d.turns = turn.New(turn.Config{
		Start: d.fakes.start, Tool: findTool, Journal: journal.Turns{Journal: d.journal}, History: d.reader.Records,
	})
	d.server, err = httpapi.New(httpapi.Config{
		Turns: d.turns, Tools: catalogue{}, History: d.reader, Token: testToken, Tokens: tokens.Open(state), Version: "test", Pages: Handler(),
	})
	if err != nil {
		return err
	}
	return errors.Join(d.serve(&d.open, letIn(d.server)), d.serve(&d.guarded, d.server))
}

// letIn bears the token for whoever asks, so that a browser needs no session.
func letIn(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+testToken)
		next.ServeHTTP(w, r)
	})
}

func (d *daemon) serve(address *string, handler http.Handler) error {
	l, err := net.Listen("tcp", *address)
	if err != nil {
		return err
	}
	*address = l.Addr().String()
	l = muting{l, d.killed}
	if address == &d.guarded {
		l = noting{l, d}
	}
	server := d.server.HTTP()
	server.Handler = handler
	d.http = append(d.http, server)
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			d.t.Errorf("serve: %v", err)
		}
	}()
	return nil
}

// noting is a listener that notes the connections that it makes.
type noting struct {
	net.Listener
	d *daemon
}

func (l noting) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.d.mu.Lock()
		defer l.d.mu.Unlock()
		l.d.conns = append(l.d.conns, conn)
	}
	return conn, err
}

// muting is a listener whose connections say nothing once killed is set.
type muting struct {
	net.Listener
	killed *atomic.Bool
}

func (l muting) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return mutable{conn, l.killed}, err
}

type mutable struct {
	net.Conn
	killed *atomic.Bool
}

func (c mutable) Write(p []byte) (int, error) {
	if c.killed.Load() {
		return 0, net.ErrClosed
	}
	return c.Conn.Write(p)
}

// cut breaks the connections at guarded; the daemon goes on.
func (d *daemon) cut() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, conn := range d.conns {
		_ = conn.Close() // it may be closed already
	}
	d.conns = nil
	return nil
}

// kill ends it as SIGKILL would: connections break, and neither they nor the
// journal have an end of what ran, although the first that breaks aborts what
// ran for it.
func (d *daemon) kill() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.http == nil {
		return nil
	}
	d.killed.Store(true)
	failed := d.journal.Close()
	for _, server := range d.http {
		failed = errors.Join(failed, server.Close())
	}
	d.http = nil
	d.server.Close()
	d.turns.Close()
	d.server.Wait()
	return errors.Join(failed, d.reader.Close())
}

// control is how the browser's script has the daemon do what a user cannot.
func (d *daemon) control() http.Handler {
	mux := http.NewServeMux()
	do := func(path string, action func(*http.Request) (string, error)) {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			text, err := action(r)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			_, _ = w.Write([]byte(text))
		})
	}
	do("/kill", func(*http.Request) (string, error) { return "", d.kill() })
	do("/start", func(*http.Request) (string, error) { return "", d.start() })
	do("/cut", func(*http.Request) (string, error) { return "", d.cut() })
	do("/let-go/{name}", func(r *http.Request) (string, error) {
		d.fakes.letGo(r.PathValue("name"))
		return "", nil
	})
	do("/link", func(r *http.Request) (string, error) { return d.link(r.Context()) })
	return mux
}

// link is what `toolhost console` would print.
func (d *daemon) link(ctx context.Context) (string, error) {
	c, err := client.New(client.Options{URL: "http://" + d.guarded, Token: testToken})
	if err != nil {
		return "", err
	}
	defer c.Close()
	link, err := c.LoginLink(ctx)
	return "http://" + d.guarded + link.Path, err
}
