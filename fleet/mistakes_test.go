package fleet_test

import (
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/nats-io/nats.go"

	"github.com/toolhost/toolhost/fleet"
	"github.com/toolhost/toolhost/fleet/engine"
	"github.com/toolhost/toolhost/fleet/internal/link"
	"github.com/toolhost/toolhost/fleet/worker"
	"github.com/toolhost/toolhost/internal/testenv/certificate"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// A worker that was started wrongly says in its log what to do, and so does the engine that
// refuses it, each once.
func TestMistakesOfWorkersAreLogged(t *testing.T) {
	t.Parallel()
	w, public := newKeys(t, "w1", "other")
	delete(public, "other")
	cert, key := certificate.Of127(t, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	engineLog := &lines{}
	e, err := engine.Start(engine.Config{
		Listen: "127.0.0.1:0", Cert: cert, CertKey: key, Caller: w.key.Public(), Workers: public, Logger: hclog.New(&hclog.LoggerOptions{Output: engineLog}),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	f, err := fleet.Open(t.Context(), fleet.Config{Engine: e, Key: w.key, Workers: public, WorkersOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	stranger := newKey(t, filepath.Join(w.dir, "stranger")).Public()
	for _, x := range []struct{ name, key, ca, caller, says, engineSays string }{
		{"w1", "other", cert, w.key.Public(), "does not let in the key U", "a worker is refused: its key was removed, or is not in fleet.workers"},
		{"nosuch", "w1", cert, w.key.Public(), "is not that of worker nosuch: give the --name", `Subscription Violation - Subject \"th1.w.nosuch.>\"`},
		{"w1", "w1", "", w.key.Public(), "with --ca FILE", "TLS handshake error: remote error: tls: bad certificate"},
		{"w1", "w1", cert, stranger, "start the worker with --caller and the key; it is not logged again: caller=" + w.key.Public(), ""},
	} {
		log := &lines{}
		c := worker.Config{
			Name: x.name, URL: "tls://" + e.Address(), CA: x.ca, KeyFile: w.workers[x.key], Callers: []string{x.caller},
			Dir: filepath.Join(w.dir, "run"), Slots: 1, Logger: hclog.New(&hclog.LoggerOptions{Output: log}),
		}
		opened, err := worker.Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		wait.Until(t, x.says, func() bool { return log.count(x.says) > 0 })
		wait.Until(t, x.engineSays, func() bool { return x.engineSays == "" || engineLog.count(x.engineSays) > 0 })
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
		if n := log.count(x.says); n > 2 || n > 1 && x.engineSays == "" { // there are two connections
			t.Errorf("%q is logged %d times", x.says, n)
		}
		if n := engineLog.count(x.engineSays); x.engineSays != "" && n != 1 {
			t.Errorf("%q is logged %d times", x.engineSays, n)
		}
	}
}

// A worker that wants TLS of an engine that has none says what to do.
func TestAnEngineWithoutTLS(t *testing.T) {
	t.Parallel()
	w, log := newWorld(t, "w1"), &lines{}
	opened, err := worker.Open(t.Context(), worker.Config{
		Name: "w1", URL: "tls://" + w.engine.Address(), KeyFile: w.workers["w1"], Callers: []string{w.key.Public()},
		Dir: filepath.Join(w.dir, "run"), Slots: 1, Logger: hclog.New(&hclog.LoggerOptions{Output: log}),
	})
	if err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "it says what to do", func() bool { return log.count("the engine has no TLS: give it a certificate") > 0 })
	if err := opened.Close(); err != nil {
		t.Error(err)
	}
}

// A worker that has another one's name, but not its key, is told that alone: to end one of
// the two could end the other.
func TestANameOfAnotherWorker(t *testing.T) {
	t.Parallel()
	w, log := newWorld(t, "w1", "w2"), &lines{}
	w.work("w2", nil)
	w.work("w2", func(c *worker.Config) {
		c.KeyFile, c.Dir, c.Logger = w.workers["w1"], c.Dir+"-second", hclog.New(&hclog.LoggerOptions{Output: log})
	})
	wait.Until(t, "it says that the key is wrong", func() bool { return log.count("is not that of worker w2") > 0 })
	var beats atomic.Int64
	conn, _ := w.dial(filepath.Join(w.dir, "caller"))
	w.subscribe(conn, link.WorkerBeat("w2"), func(*nats.Msg) { beats.Add(1) })
	wait.Until(t, "the caller has echoed several beats of the other", func() bool { return beats.Load() > 6 })
	if log.count("another process has the name") > 0 {
		t.Error("it says that there are two processes with its key")
	}
}
