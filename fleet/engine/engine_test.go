package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/toolhost/toolhost/fleet/internal/link"
	"github.com/toolhost/toolhost/fleet/internal/seal"
	"github.com/toolhost/toolhost/internal/testenv/certificate"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

func newKey(t *testing.T) *seal.Key {
	t.Helper()
	key, err := seal.Create()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// party is one that is connected, and what the engine refuses it.
type party struct {
	conn    *nats.Conn
	refused chan string
}

func join(t *testing.T, e *Engine, key *seal.Key) *party {
	t.Helper()
	p := &party{refused: make(chan string, 100)}
	conn, err := nats.Connect("nats://"+e.Address(), nats.Nkey(key.Public(), key.Sign), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		p.refused <- err.Error()
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	p.conn = conn
	return p
}

// tries does something that must be refused, or must not be.
func (p *party) tries(t *testing.T, what string, allowed bool, do func() error) {
	t.Helper()
	if err := do(); err != nil {
		t.Fatal(err)
	}
	// The server answers in order: what it has refused is known when it has answered this.
	if err := p.conn.FlushTimeout(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-p.refused:
		if allowed {
			t.Errorf("%s is refused: %s", what, err)
		}
	case <-time.After(map[bool]time.Duration{true: 0, false: 10 * time.Second}[allowed]):
		if !allowed {
			t.Errorf("%s is let through", what)
		}
	}
}

// Each party tries every subject of the others.
func TestRights(t *testing.T) {
	caller, one, two := newKey(t), newKey(t), newKey(t)
	e, err := Start(Config{Listen: "127.0.0.1:0", Caller: caller.Public(), Workers: map[string]string{"w1": one.Public(), "w2": two.Public()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	tryRights(t, e, caller, one, two)
}

// A nats-server of somebody's own gives the same rights with the configuration that is
// written for it.
func TestRightsWithNATSConfig(t *testing.T) {
	caller, one, two := newKey(t), newKey(t), newKey(t)
	text := NATSConfig(caller.Public(), map[string]string{"w1": one.Public(), "w2": two.Public()})
	path := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(path, []byte("listen: \"127.0.0.1:-1\"\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := server.ProcessConfigFile(path)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	o.NoSigs, o.NoLog = true, true
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	e := &Engine{server: s}
	s.Start()
	t.Cleanup(e.Close)
	if !s.ReadyForConnections(readyTimeout) {
		t.Fatal("it does not listen")
	}
	tryRights(t, e, caller, one, two)
	if stranger := newKey(t); stranger != nil {
		if conn, err := nats.Connect("nats://"+e.Address(), nats.Nkey(stranger.Public(), stranger.Sign)); err == nil {
			conn.Close()
			t.Error("a stranger is let in")
		}
	}
}

func tryRights(t *testing.T, e *Engine, caller, one, two *seal.Key) {
	t.Helper()
	c, w := join(t, e, caller), join(t, e, one)
	me, other := caller.Public(), two.Public()
	for _, x := range []struct {
		who           string
		p             *party
		verb, subject string
		allowed       bool
	}{
		{"a worker", w, "publish", link.WorkerBeat("w1"), true},
		{"a worker", w, "publish", link.FrameSubject(me, "w1", "inbox"), true},
		{"a worker", w, "subscribe", link.ForWorker("w1"), true},
		{"a worker", w, "subscribe", link.CallerBeats, true},
		{"a worker", w, "publish", link.WorkerBeat("w2"), false},
		{"a worker", w, "publish", link.FrameSubject(me, "w2", "inbox"), false},
		{"a worker", w, "publish", link.CallerBeat(me), false},
		{"a worker", w, "publish", link.OfferSubject("w2", me), false},
		{"a worker", w, "publish", link.ControlSubject("w1", me), false},
		{"a worker", w, "subscribe", link.ForWorker("w2"), false},
		{"a worker", w, "subscribe", link.ForWorker("*"), false},
		{"a worker", w, "subscribe", link.FrameSubject(me, "w2", "*"), false},
		{"a worker", w, "subscribe", link.FrameSubject("*", "*", "*"), false},
		{"a worker", w, "subscribe", link.WorkerBeats, false},
		{"a worker", w, "subscribe", ">", false},
		{"a worker", w, "subscribe", "$SYS.>", false},
		{"the caller", c, "publish", link.OfferSubject("w1", me), true},
		{"the caller", c, "publish", link.ControlSubject("w2", me), true},
		{"the caller", c, "publish", link.CallerBeat(me), true},
		{"the caller", c, "subscribe", link.FrameSubject(me, "w1", "*"), true},
		{"the caller", c, "subscribe", link.WorkerBeats, true},
		{"the caller", c, "publish", link.CallerBeat(other), false},
		{"the caller", c, "publish", link.OfferSubject("w1", other), false},
		{"the caller", c, "publish", link.WorkerBeat("w1"), false},
		{"the caller", c, "publish", link.FrameSubject(me, "w1", "inbox"), false},
		{"the caller", c, "subscribe", link.FrameSubject(other, "w1", "*"), false},
		{"the caller", c, "subscribe", link.ForWorker("w1"), false},
		{"the caller", c, "subscribe", ">", false},
	} {
		x.p.tries(t, x.who+": "+x.verb+" "+x.subject, x.allowed, func() error {
			if x.verb == "publish" {
				return x.p.conn.Publish(x.subject, nil)
			}
			_, err := x.p.conn.SubscribeSync(x.subject)
			return err
		})
	}
}

// Who has no key that is known is not let in.
func TestStrangers(t *testing.T) {
	e, err := Start(Config{Listen: "127.0.0.1:0", Caller: newKey(t).Public()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	stranger := newKey(t)
	for name, option := range map[string]nats.Option{
		"another key": nats.Nkey(stranger.Public(), stranger.Sign), "no key": nats.Name("x"), "a password": nats.UserInfo("a", "b"),
	} {
		if conn, err := nats.Connect("nats://"+e.Address(), option); err == nil {
			conn.Close()
			t.Errorf("%s is let in", name)
		}
	}
}

func TestWrongConfigurations(t *testing.T) {
	key, other := newKey(t).Public(), newKey(t).Public()
	for want, c := range map[string]Config{
		"without TLS":         {Listen: "0.0.0.0:0"},
		"is not an address":   {Listen: "7420"},
		"give both or":        {Listen: "127.0.0.1:0", Cert: "x"},
		"is not a name for":   {Listen: "127.0.0.1:0", Workers: map[string]string{"w.1": other}},
		"is not the public":   {Listen: "127.0.0.1:0", Workers: map[string]string{"w1": "U"}},
		"the same key as the": {Listen: "127.0.0.1:0", Workers: map[string]string{"w1": key}},
		"cannot use the":      {Listen: "127.0.0.1:0", Cert: "/nosuch", CertKey: "/nosuch"},
	} {
		c.Caller = key
		if e, err := Start(c); err == nil || !strings.Contains(err.Error(), want) {
			if e != nil {
				e.Close()
			}
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
	for want, url := range map[string]string{
		"has no port":      "tls://10.0.0.5",
		"not encrypted":    "nats://10.0.0.1:4222",
		"is not a URL":     "http://127.0.0.1",
		"name or password": "tls://a:b@host:1",
		"mix nats":         "tls://host:1,nats://127.0.0.1:2",
		"is not set":       "",
	} {
		if _, err := link.CheckURL(url); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", url, err, want)
		}
	}
}

// A certificate that no worker would take is refused, and the files are named.
func TestWrongCertificates(t *testing.T) {
	now := time.Now()
	good, goodKey := certificate.Of127(t, now.Add(-time.Hour), now.Add(time.Hour))
	old, oldKey := certificate.Of127(t, now.Add(-2*time.Hour), now.Add(-time.Hour))
	early, earlyKey := certificate.Of127(t, now.Add(time.Hour), now.Add(2*time.Hour))
	for _, x := range []struct{ cert, key, want string }{
		{good, goodKey, ""},
		{good, oldKey, "cannot use the fleet's certificate " + good + " with the key " + oldKey},
		{old, oldKey, old + " was valid until "},
		{early, earlyKey, early + " is valid from "},
	} {
		var log strings.Builder
		e, err := Start(Config{Listen: "127.0.0.1:0", Cert: x.cert, CertKey: x.key, Caller: newKey(t).Public(), Logger: hclog.New(&hclog.LoggerOptions{Output: &log})})
		if err == nil {
			e.Close()
		}
		unfit := x.key != goodKey && x.cert == good // one that is not valid now is only told
		if said := fmt.Sprint(log.String(), err); (err != nil) != unfit || !strings.Contains(said, x.want) || x.want == "" && log.Len() > 0 {
			t.Errorf("%q, want %q", said, x.want)
		}
	}
}

// The log of what is refused is bounded, whatever clients send, and has each thing once.
func TestRefusalsAreBounded(t *testing.T) {
	var log strings.Builder
	r := newRefusals(hclog.New(&hclog.LoggerOptions{Output: &log}))
	for port := range 3 {
		r.Errorf(`10.0.0.7:%d - cid:%d - "v1:go:a \" - b" - authentication error - Nkey %q`, 4000+port, port, "U"+strings.Repeat("A", 55))
	}
	if said := log.String(); strings.Count(said, "\n") != 1 || !strings.Contains(said, "address=10.0.0.7 key=UAAA") {
		t.Errorf("%s", said)
	}
	for n := range 2 * maxRefusalsOfOne {
		r.Errorf("[::1]:1 - cid:1 - anything %d", n)
	}
	if n := strings.Count(log.String(), "\n"); n != 1+maxRefusalsOfOne {
		t.Errorf("%d lines of two addresses", n)
	}
	for n := range 2 * maxRefusals {
		r.Errorf("10.0.%d.%d:1 - cid:1 - anything", n/256, n%256)
	}
	if n := strings.Count(log.String(), "\n"); n != maxRefusals {
		t.Errorf("%d lines", n)
	}
}

// A worker that is removed loses its connection and gets none any more; the others keep
// theirs.
func TestRemove(t *testing.T) {
	caller, one, two := newKey(t), newKey(t), newKey(t)
	e, err := Start(Config{Listen: "127.0.0.1:0", Caller: caller.Public(), Workers: map[string]string{"w1": one.Public(), "w2": two.Public()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	address := e.Address()
	gone, left := join(t, e, one), []*party{join(t, e, caller), join(t, e, two)}
	closed := make(chan struct{})
	gone.conn.SetDisconnectErrHandler(func(*nats.Conn, error) { close(closed) })
	for range 2 { // again is no mistake
		if err := e.Remove("w1"); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Error("its connection goes on")
	}
	if conn, err := nats.Connect("nats://"+e.Address(), nats.Nkey(one.Public(), one.Sign)); err == nil {
		conn.Close()
		t.Error("it is let in again")
	}
	for _, p := range left {
		if err := p.conn.FlushTimeout(10 * time.Second); err != nil || p.conn.Stats().Reconnects != 0 {
			t.Errorf("another one's: %v, %d reconnects", err, p.conn.Stats().Reconnects)
		}
	}
	if e.Address() != address {
		t.Errorf("it listens on %s, not on %s", e.Address(), address)
	}
}

// A party whose key an engine refuses says so, a few times, and goes on trying: the next
// engine may know it.
func TestRefusedKeysTryAgain(t *testing.T) {
	caller, worker := newKey(t), newKey(t)
	c := Config{Listen: "127.0.0.1:0", Caller: caller.Public()}
	first, err := Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(first.Close)
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	conn, err := link.Connect(link.Options{
		URL: "nats://" + first.Address(), Key: worker, Name: "w1", Logger: hclog.New(&hclog.LoggerOptions{Output: log}),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	wait.Until(t, "it has tried more often than clients of NATS do by default", func() bool {
		v, err := first.server.Varz(nil)
		return err == nil && v.TotalConnections > 5
	})
	if raw, err := os.ReadFile(log.Name()); err != nil || strings.Count(string(raw), "uthorization") != 1 {
		t.Errorf("%v; not one refusal is logged: %s", err, raw)
	}
	c.Listen, c.Workers = first.Address(), map[string]string{"w1": worker.Public()}
	first.Close()
	second, err := Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(second.Close)
	wait.Until(t, "it is let in", conn.IsConnected)
}

// A party trusts the certificates that its file has when it connects.
func TestARenewedCertificateIsTrusted(t *testing.T) {
	caller, now := newKey(t), time.Now()
	cert, key := certificate.Of127(t, now.Add(-time.Hour), now.Add(time.Hour))
	nextCert, nextKey := certificate.Of127(t, now.Add(-time.Hour), now.Add(time.Hour))
	e, err := Start(Config{Listen: "127.0.0.1:0", Cert: cert, CertKey: key, Caller: caller.Public()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	conn, err := link.Connect(link.Options{URL: "tls://" + e.Address(), CA: cert, Key: caller, Logger: hclog.NewNullLogger()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	wait.Until(t, "it is connected", conn.IsConnected)
	if err := errors.Join(os.Rename(nextKey, key), os.Rename(nextCert, cert), conn.ForceReconnect()); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "it is connected again", func() bool { return conn.Stats().Reconnects > 0 && conn.IsConnected() })
}
