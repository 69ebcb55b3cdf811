// Package link connects the parties of a fleet by NATS, and names the subjects that they
// use and may use.
package link

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/nats-io/nats.go"

	"github.com/toolhost/toolhost/fleet/internal/seal"
)

// Options of a connection.
type Options struct {
	// URL of one engine or several, separated by commas: nats://127.0.0.1:7420, or
	// tls://host:7420. Off loopback only tls is taken.
	URL string
	// InProcess is an engine in this process, instead of a URL.
	InProcess nats.InProcessConnProvider
	// CA is a file of certificates that the engine's must be signed by; empty takes the
	// system's.
	CA string
	// Key is who connects.
	Key *seal.Key
	// Name is shown by the engine's tools.
	Name   string
	Logger hclog.Logger
	// Remedies are logged with what is refused.
	Remedies Remedies
	// Changed, if not nil, is called when the connection is lost and when it is there
	// again.
	Changed func()
	// Trouble, if not nil, is called with why there is no connection whenever that is known
	// anew, and with nil when there is one.
	Trouble func(error)
}

// Remedies say what to do where the engine does not know the party's key, does not give it the
// rights of its part, or has a certificate that the party does not trust. Where it has none at
// all that is the same for all parties.
type Remedies struct{ Key, Rights, CA string }

// Of is the remedy for an error, or empty.
func (r Remedies) Of(err error) string {
	_, untrusted := errors.AsType[x509.UnknownAuthorityError](err)
	switch {
	case untrusted:
		return r.CA
	case errors.Is(err, nats.ErrSecureConnWanted):
		return "the engine has no TLS: give it a certificate (fleet: {cert: FILE, certKey: FILE}), or connect from its own machine with nats://HOST:PORT"
	case errors.Is(err, nats.ErrPermissionViolation):
		return r.Rights
	case strings.Contains(strings.ToLower(err.Error()), nats.AUTHORIZATION_ERR): // as the engine writes it
		return r.Key
	}
	return ""
}

const (
	// connectTimeout bounds one try to connect.
	connectTimeout = 5 * time.Second
	// reconnectWait is how long it waits before it tries a server again, and at most so long
	// again, by chance, so that not all try at once.
	reconnectWait = 250 * time.Millisecond
)

// Connect connects, and goes on trying when it is not possible or no longer. What cannot
// be sent in the meantime is not sent later.
func Connect(o Options) (*nats.Conn, error) {
	complaints := &complaints{logger: o.Logger, remedies: o.Remedies}
	options := []nats.Option{
		nats.Name(o.Name), nats.Nkey(o.Key.Public(), o.Key.Sign), nats.Timeout(connectTimeout),
		nats.MaxReconnects(-1), nats.ReconnectWait(reconnectWait), nats.ReconnectJitter(reconnectWait, reconnectWait), nats.ReconnectBufSize(-1), nats.RetryOnFailedConnect(true),
		nats.IgnoreAuthErrorAbort(), // a key that is refused may be known to the next engine
		nats.PingInterval(2 * time.Second), nats.MaxPingsOutstanding(2),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				complaints.say("the connection to the fleet's engine is lost", err)
				o.trouble(err)
			}
			o.changed()
		}),
		nats.ConnectHandler(func(c *nats.Conn) {
			complaints.end()
			o.trouble(nil)
			if o.InProcess == nil {
				o.Logger.Info("connected to the fleet's engine", "url", c.ConnectedUrlRedacted())
			}
			o.changed()
		}),
		nats.ReconnectHandler(func(*nats.Conn) {
			complaints.end()
			o.trouble(nil)
			o.Logger.Info("connected to the fleet's engine again")
			o.changed()
		}),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) {
			complaints.say("cannot connect to the fleet's engine: trying again", err)
			o.trouble(err)
		}),
		nats.ErrorHandler(func(c *nats.Conn, _ *nats.Subscription, err error) {
			complaints.say("the fleet's engine complains", err)
			if !c.IsConnected() { // a key that is refused is told here alone
				o.trouble(err)
			}
		}),
	}
	if o.InProcess != nil {
		options = append(options, nats.InProcessServer(o.InProcess))
		return nats.Connect("", options...)
	}
	// Who sends a message writes it: to wake a goroutine that does takes as long as its way. In
	// this process the engine would have to read it first, and may be writing itself.
	options = append(options, nats.WriteBufferSize(1))
	secure, err := CheckURL(o.URL)
	if err != nil {
		return nil, err
	}
	if secure {
		options = append(options, nats.Secure(&tls.Config{MinVersion: tls.VersionTLS13}))
		if o.CA != "" {
			if _, err := readCA(o.CA); err != nil {
				return nil, err
			}
			options = append(options, o.trustCA)
		}
	} else {
		options = append(options, nats.SetCustomDialer(&net.Dialer{Timeout: connectTimeout, Control: staysHere}))
	}
	return nats.Connect(o.URL, options...)
}

// Close closes a connection once what was sent on it has gone out, which may take wait at
// most. The error is that it has not: without an engine that is known at once.
func Close(conn *nats.Conn, wait time.Duration) error {
	defer conn.Close()
	if !conn.IsConnected() {
		return nats.ErrDisconnected
	}
	return conn.FlushTimeout(wait)
}

// staysHere refuses to connect to another machine without TLS: engines name others of their
// cluster, wherever these are.
func staysHere(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err == nil && !loopback(host) {
		err = fmt.Errorf("%s is not on this machine, and the connection would not be encrypted: give tls://HOST:PORT", address)
	}
	return err
}

// complaints logs each error once until there is a connection again: there are four tries a
// second.
type complaints struct {
	logger   hclog.Logger
	remedies Remedies

	mu   sync.Mutex
	said map[string]bool
}

// maxComplaints bounds the different errors that are remembered.
const maxComplaints = 16

func (c *complaints) say(what string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.said[err.Error()] || len(c.said) == maxComplaints {
		return
	}
	if c.said == nil {
		c.said = map[string]bool{}
	}
	c.said[err.Error()] = true
	args := []any{"error", err}
	if remedy := c.remedies.Of(err); remedy != "" {
		args = append(args, "remedy", remedy)
	}
	c.logger.Warn(what, args...)
}

func (c *complaints) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.said = nil
}

func (o Options) changed() {
	if o.Changed != nil {
		o.Changed()
	}
}

func (o Options) trouble(err error) {
	if o.Trouble != nil {
		o.Trouble(err)
	}
}

// trustCA has each connection trust what is in the file by then.
func (o Options) trustCA(to *nats.Options) error {
	to.RootCAsCB = func() (*x509.CertPool, error) { return readCA(o.CA) }
	return nil
}

func readCA(path string) (*x509.CertPool, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificates of the fleet's engine: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(raw) {
		return nil, fmt.Errorf("%s has no certificate in PEM", path)
	}
	return pool, nil
}

// CheckURL says what is wrong with the URLs of engines, and whether they are of TLS.
func CheckURL(urls string) (secure bool, err error) {
	if urls == "" {
		return false, errors.New("the URL of the fleet's engine is not set: give one such as tls://host:7420")
	}
	for i, each := range strings.Split(urls, ",") {
		u, err := url.Parse(strings.TrimSpace(each))
		if err != nil || u.Host == "" || u.Scheme != "nats" && u.Scheme != "tls" {
			return false, fmt.Errorf("%q is not a URL of a fleet's engine: give nats://127.0.0.1:PORT or tls://HOST:PORT", each)
		}
		if u.User != nil {
			return false, fmt.Errorf("the URL of the fleet's engine %s has a name or password: parties have keys instead", u.Redacted())
		}
		if u.Port() == "" {
			return false, fmt.Errorf("%q has no port: give that on which the fleet's engine listens, such as %s://%s", each, u.Scheme, net.JoinHostPort(u.Hostname(), "7420"))
		}
		if u.Scheme == "nats" && !loopback(u.Hostname()) {
			return false, fmt.Errorf("%s is not on this machine, and nats:// is not encrypted: give tls://%s", each, u.Host)
		}
		if i > 0 && secure != (u.Scheme == "tls") {
			return false, errors.New("the URLs of the fleet's engines mix nats:// and tls://")
		}
		secure = u.Scheme == "tls"
	}
	return secure, nil
}

// loopback says whether a host is this machine alone.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// CheckListen checks the address that an engine is to listen on.
func CheckListen(address string, secure bool) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is not an address to listen on: give HOST:PORT, such as 127.0.0.1:7420", address)
	}
	if !secure && !loopback(host) {
		return fmt.Errorf("the fleet would listen on %s, which other machines reach, without TLS: give cert and certKey, or listen on 127.0.0.1", address)
	}
	return nil
}
