package daemon

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/internal/tools/config"
)

// certificate is the TLS listener's. Files that have changed are read again for the next
// connection; while they cannot be read, the old certificate stays in use.
type certificate struct {
	cert, key string
	logger    hclog.Logger

	mu     sync.Mutex
	held   *tls.Certificate
	of     [2]time.Time // when the files had changed that held is of
	failed [2]time.Time // the same of those that could not be read
}

func openCertificate(cert, key string, logger hclog.Logger) (*certificate, error) {
	c := &certificate{cert: cert, key: key, logger: logger}
	if err := c.read(c.changed()); err != nil {
		return nil, fmt.Errorf("cannot use TLS with %s and %s: %w; name a certificate and its key, both in PEM, as tls.cert and tls.key", cert, key, err)
	}
	return c, nil
}

// CheckCertificate finds a certificate with which the daemon would not start. Another user
// than the daemon's may not read the key, and cannot tell.
func CheckCertificate(loaded *config.Loaded) error {
	cert, key := loaded.Daemon.TLSCert, loaded.Daemon.TLSKey
	if cert == "" {
		return nil
	}
	if _, err := openCertificate(cert, key, nil); err != nil && !errors.Is(err, fs.ErrPermission) {
		return config.Problems{loaded.Problem("tls.cert", err)}
	}
	return nil
}

func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current(), nil },
	}
}

func (c *certificate) changed() (at [2]time.Time) {
	for i, path := range []string{c.cert, c.key} {
		if info, err := os.Stat(path); err == nil {
			at[i] = info.ModTime()
		}
	}
	return at
}

func (c *certificate) read(at [2]time.Time) error {
	read, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		c.failed = at
		return err
	}
	c.held, c.of = &read, at
	return nil
}

func (c *certificate) current() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.changed()
	if at == c.of || at == c.failed {
		return c.held
	}
	if err := c.read(at); err != nil {
		c.logger.Error("the new certificate cannot be used, the old one stays", "error", err)
		return c.held
	}
	c.logger.Info("certificate loaded", "file", c.cert)
	return c.held
}
