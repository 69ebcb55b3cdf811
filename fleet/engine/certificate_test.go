package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/nats-io/nats.go"

	"github.com/toolhost/toolhost/internal/testenv/certificate"
)

// A certificate that is renewed is served at once, also after a worker was removed. One that
// cannot be used leaves the one before, and is logged once.
func TestARenewedCertificate(t *testing.T) {
	caller, one, now := newKey(t), newKey(t), time.Now()
	cert, key := certificate.Of127(t, now.Add(-2*time.Hour), now.Add(-time.Hour))
	good, goodKey := certificate.Of127(t, now.Add(-time.Hour), now.Add(time.Hour))
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	e, err := Start(Config{
		Listen: "127.0.0.1:0", Cert: cert, CertKey: key, Caller: caller.Public(), Workers: map[string]string{"w1": one.Public()}, Logger: hclog.New(&hclog.LoggerOptions{Output: log}),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	connects := func(trust, want string) {
		t.Helper()
		conn, err := nats.Connect("tls://"+e.Address(), nats.Nkey(caller.Public(), caller.Sign), nats.RootCAs(trust))
		if err == nil {
			conn.Close()
		}
		if (err == nil) != (want == "") || want != "" && !strings.Contains(err.Error(), want) {
			t.Errorf("connecting: %v, want %q", err, want)
		}
	}
	replace := func(path, with string) {
		t.Helper()
		if err := os.Rename(with, path); err != nil {
			t.Fatal(err)
		}
	}
	connects(cert, "expired")
	connects(cert, "expired")
	replace(cert, good)
	replace(key, goodKey)
	connects(cert, "")
	if err := e.Remove("w1"); err != nil {
		t.Fatal(err)
	}
	connects(cert, "")
	_, other := certificate.Of127(t, now.Add(-time.Hour), now.Add(time.Hour))
	replace(key, other)
	connects(cert, "")
	connects(cert, "")
	raw, err := os.ReadFile(log.Name())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{" was valid until ", "private key does not match"} {
		if n := strings.Count(string(raw), want); n != 1 {
			t.Errorf("%q is logged %d times:\n%s", want, n, raw)
		}
	}
}
