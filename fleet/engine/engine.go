// Package engine is the NATS server that a program has in itself to be the middle of its
// fleet. It lets in its own caller and the workers that it knows by their keys, each with
// no more rights than its part needs. It is the only package that knows nats-server.
package engine

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/toolhost/toolhost/fleet/internal/link"
	"github.com/toolhost/toolhost/fleet/internal/seal"
)

// Config of an engine.
type Config struct {
	// Listen is HOST:PORT; port 0 is any. Off loopback it needs Cert and CertKey.
	Listen string
	// Cert and CertKey are PEM files of the certificate that workers see, read anew for each
	// that connects.
	Cert, CertKey string
	// Caller is the public nkey of the caller.
	Caller string
	// Workers are the public nkeys of those that may join, by name.
	Workers map[string]string
	// Logger is told once of each thing that is refused; nil is silent.
	Logger hclog.Logger
}

const (
	readyTimeout   = 10 * time.Second
	maxConnections = 4096
)

// Engine is a running server.
type Engine struct {
	server *server.Server

	mu      sync.Mutex
	options *server.Options
	workers map[string]string // by name, those that may join
}

// Check says what is wrong with a configuration.
func (c Config) Check() error {
	if (c.Cert == "") != (c.CertKey == "") {
		return errors.New("the fleet's cert and certKey belong together: give both or neither")
	}
	if err := link.CheckListen(c.Listen, c.Cert != ""); err != nil {
		return err
	}
	_, err := CheckKeys(c.Caller, c.Workers)
	return err
}

// CheckKeys says what is wrong with the public keys of a caller and its workers, which are by
// name, and with which worker's. The caller's may be unknown: empty.
func CheckKeys(caller string, workers map[string]string) (worker string, err error) {
	seen := map[string]string{caller: "the caller"}
	for _, name := range slices.Sorted(maps.Keys(workers)) {
		key := workers[name]
		if err := link.CheckName(name); err != nil {
			return name, err
		}
		if err := seal.CheckPublic(key); err != nil {
			return name, fmt.Errorf("worker %s: %w", name, err)
		}
		if other, twice := seen[key]; twice {
			return name, fmt.Errorf("worker %s has the same key as %s: each needs one of its own", name, other)
		}
		seen[key] = "worker " + name
	}
	return "", nil
}

// Start listens, and returns once connections are taken.
func Start(c Config) (*Engine, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 0 || n > 65535 {
		return nil, fmt.Errorf("the fleet cannot listen on port %q: give a number up to 65535", port)
	}
	n = cmp.Or(n, server.RANDOM_PORT)
	o := &server.Options{
		ServerName: "toolhost", Host: host, Port: n, NoSigs: true, NoLog: true, MaxConn: maxConnections,
		PingInterval: 2 * time.Second, MaxPingsOut: 2, Nkeys: []*server.NkeyUser{user(c.Caller, link.CallerRights(c.Caller))},
	}
	for name, key := range c.Workers {
		o.Nkeys = append(o.Nkeys, user(key, link.WorkerRights(name)))
	}
	if c.Cert != "" {
		served, err := newCertificates(c.Cert, c.CertKey, c.Logger)
		if err != nil {
			return nil, err
		}
		o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: served.serve}
		o.TLS, o.TLSTimeout = true, 5
	}
	s, err := server.NewServer(o)
	if err != nil {
		return nil, fmt.Errorf("cannot make the fleet's engine: %w", err)
	}
	if c.Logger != nil {
		s.SetLoggerV2(newRefusals(c.Logger), false, false, false)
	}
	// The server ends the process if it cannot listen, so that is tried before.
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(max(n, 0))))
	if err != nil {
		return nil, fmt.Errorf("the fleet cannot listen on %s: %w", c.Listen, err)
	}
	_ = l.Close()
	s.Start()
	if !s.ReadyForConnections(readyTimeout) {
		s.Shutdown()
		return nil, fmt.Errorf("the fleet's engine does not listen on %s within %s", c.Listen, readyTimeout)
	}
	return &Engine{server: s, options: o, workers: maps.Clone(c.Workers)}, nil
}

func user(key string, rights link.Rights) *server.NkeyUser {
	return &server.NkeyUser{Nkey: key, Permissions: &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: rights.Publish},
		Subscribe: &server.SubjectPermission{Allow: rights.Subscribe},
	}}
}

// Remove ends a worker's connections, and lets it in no more. It does nothing if the
// worker is not known.
func (e *Engine) Remove(name string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	key, known := e.workers[name]
	if !known {
		return nil
	}
	o := e.options.Clone()
	o.Nkeys = slices.DeleteFunc(o.Nkeys, func(u *server.NkeyUser) bool { return u.Nkey == key })
	if err := e.server.ReloadOptions(o); err != nil {
		return fmt.Errorf("cannot take the rights of worker %s: %w", name, err)
	}
	e.options = o
	delete(e.workers, name)
	return nil
}

// InProcessConn connects this process without a port.
func (e *Engine) InProcessConn() (net.Conn, error) { return e.server.InProcessConn() }

// Address is where it listens.
func (e *Engine) Address() string { return e.server.Addr().String() }

// Close ends all connections.
func (e *Engine) Close() {
	e.server.Shutdown()
	e.server.WaitForShutdown()
}
