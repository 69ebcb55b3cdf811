package daemon

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/client"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// issued is a certificate that signs itself, for 127.0.0.1 and tools.test.
type issued struct{ cert, key []byte }

func issue(t *testing.T, serial int64) issued {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"tools.test"},
		IsCA: true, BasicConstraintsValid: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return issued{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})}
}

func (i issued) trusted() *tls.Config {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(i.cert)
	return &tls.Config{RootCAs: pool}
}

// put writes the files as certbot does: each new one in the place of the old.
func (i issued) put(t *testing.T, cert, key string) {
	t.Helper()
	for path, raw := range map[string][]byte{cert: i.cert, key: i.key} {
		if err := os.WriteFile(path+".new", raw, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
}

// The daemon over TLS, from end to end: only who trusts its certificate sends a token;
// a renewed one is taken up while streams go on; HSTS is for the public name alone.
func TestTLSFromEndToEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	first, second := issue(t, 1), issue(t, 2)
	first.put(t, cert, key)
	w := newWorld(t, "tls: {cert: "+cert+", key: "+key+"}\npublicUrl: https://tools.test\n")
	w.Listen = "127.0.0.1:0"
	d := w.daemon()
	url := strings.Replace(d.tcp(), "http://", "https://", 1)
	token, err := os.ReadFile(filepath.Join(w.State, TokenName))
	if err != nil {
		t.Fatal(err)
	}
	as := func(trust *tls.Config, url string) *client.Client {
		c, err := client.New(client.Options{URL: url, Token: strings.TrimSpace(string(token)), TLS: trust})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	long := as(first.trusted(), url)
	begun, err := long.Begin(wait.Context(t), api.TurnSpec{Headless: true})
	if err != nil {
		t.Fatal(err)
	}
	for who, c := range map[string]*client.Client{"who trusts the system": as(nil, url), "who trusts another": as(second.trusted(), url)} {
		if err := c.Ready(wait.Context(t)); err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("%s: %v", who, err)
		}
	}
	if err := as(nil, d.tcp()).Ready(wait.Context(t)); err == nil {
		t.Error("it speaks HTTP without TLS, too")
	}

	// A call is under way over the first certificate while the second one comes.
	gate := filepath.Join(w.dir, "gate")
	type answer struct {
		results []*api.Result
		err     error
	}
	done := make(chan answer, 1)
	running := make(chan struct{})
	go func() {
		results, err := long.RunEvents(wait.Context(t), begun.TurnID, []api.Call{{ID: "1", Tool: "work", Arguments: arguments(t, workArgs{For: gate, Text: "begun"})}}, func(r api.Record) {
			if r.Kind == api.EventStarted {
				close(running)
			}
		})
		done <- answer{results, err}
	}()
	<-running
	if err := os.WriteFile(cert, []byte("half a certif"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := as(first.trusted(), url).Ready(wait.Context(t)); err != nil {
		t.Errorf("while the file is broken: %v", err)
	}
	second.put(t, cert, key)
	wait.Until(t, "the renewed certificate is served", func() bool { return as(second.trusted(), url).Ready(wait.Context(t)) == nil })
	if err := as(first.trusted(), url).Ready(wait.Context(t)); err == nil {
		t.Error("the old certificate is still served")
	}
	w.letGo(gate)
	if got := <-done; got.err != nil || len(got.results) != 1 || !got.results[0].OK() {
		t.Errorf("the call over the old connection: %+v, %v", got.results, got.err)
	}
	if !strings.Contains(d.log.text(), "the new certificate cannot be used, the old one stays") {
		t.Errorf("nothing says that the file was broken: %s", d.log.text())
	}

	browser := &http.Client{Transport: &http.Transport{TLSClientConfig: second.trusted()}}
	defer browser.CloseIdleConnections()
	for host, want := range map[string]string{"tools.test": "200 max-age=31536000", strings.TrimPrefix(url, "https://"): "200 ", "evil.test": "403 "} {
		r, err := http.NewRequestWithContext(wait.Context(t), http.MethodGet, url+"/api/health", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		answer, err := browser.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		var body bytes.Buffer
		_, _ = body.ReadFrom(answer.Body)
		_ = answer.Body.Close()
		if got := answer.Status[:4] + answer.Header.Get("Strict-Transport-Security"); got != want {
			t.Errorf("for %s: %q, want %q: %s", host, got, want, body.String())
		}
	}
}

// Off loopback there is no TCP without TLS, also where the service manager has opened
// the socket.
func TestNoPlainTCPForOthers(t *testing.T) {
	t.Parallel()
	for address, refused := range map[string]bool{"0.0.0.0:0": true, "127.0.0.1:0": false} {
		l, err := net.Listen("tcp4", address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		d := listeners{all: []net.Listener{l}}
		if err := d.guard(t.TempDir()); (err != nil) != refused || refused && !strings.Contains(err.Error(), "set tls") {
			t.Errorf("%s: %v", address, err)
		}
		d.tls = &certificate{}
		if err := d.guard(t.TempDir()); err != nil {
			t.Errorf("%s with TLS: %v", address, err)
		}
	}
}
