package engine

import (
	"crypto/tls"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// ReadCertificate reads an engine's, with its key. One that is not valid now comes with an
// error.
func ReadCertificate(cert, key string, now time.Time) (pair tls.Certificate, err error) {
	if pair, err = tls.LoadX509KeyPair(cert, key); err != nil {
		return pair, fmt.Errorf("cannot use the fleet's certificate %s with the key %s: %w; give a certificate and its key, both in PEM, as cert and certKey", cert, key, err)
	}
	switch leaf := pair.Leaf; {
	case now.After(leaf.NotAfter):
		err = fmt.Errorf("the fleet's certificate %s was valid until %s, and no worker connects; renew it", cert, leaf.NotAfter.UTC().Format(time.DateTime+" UTC"))
	case now.Before(leaf.NotBefore):
		err = fmt.Errorf("the fleet's certificate %s is valid from %s on, and no worker connects before; set this machine's clock, or make another one", cert, leaf.NotBefore.UTC().Format(time.DateTime+" UTC"))
	}
	return pair, err
}

// certificates serve a certificate as its files have it when somebody connects, so that one
// that is renewed needs no new start.
type certificates struct {
	cert, key string
	logger    hclog.Logger

	mu   sync.Mutex
	pair tls.Certificate // the last that was valid, or could be read at the start
	said string          // the error that was logged last
}

// newCertificates refuses files that cannot be read. With a certificate that is not valid
// calls of this machine go on without workers.
func newCertificates(cert, key string, logger hclog.Logger) (*certificates, error) {
	c := &certificates{cert: cert, key: key, logger: logger}
	pair, err := ReadCertificate(cert, key, time.Now())
	if pair.Leaf == nil {
		return nil, err
	}
	c.pair = pair
	c.complain(err)
	return c, nil
}

// serve is the certificate of a connection. Where the files have none that is valid, it is
// the one before.
func (c *certificates) serve(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	pair, err := ReadCertificate(c.cert, c.key, time.Now())
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.pair = pair
	}
	c.complain(err)
	pair = c.pair
	return &pair, nil
}

// complain logs an error of the files, once until there is another or none.
func (c *certificates) complain(err error) {
	said := fmt.Sprint(err)
	if err != nil && said != c.said && c.logger != nil {
		c.logger.Error("the fleet's certificate cannot be used; it is not logged again", "error", err)
	}
	c.said = said
}
