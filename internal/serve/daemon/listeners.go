package daemon

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/internal/access/tokens"
	"github.com/toolhost/toolhost/internal/serve/httpapi"
	"github.com/toolhost/toolhost/internal/tools/config"
)

// maxListeners bounds the listeners that a service manager hands over.
const maxListeners = 16

// listeners are the sockets of the API, with the tokens for TCP.
type listeners struct {
	all     []net.Listener
	token   string // of the file, which lets its bearer do anything, or empty
	old     bool   // which was there before
	tcp     bool   // there is TCP, and with TLS if tls is not nil
	tls     *certificate
	metrics string // the token of those that may see the metrics alone
	socket  *socket
}

// open opens the configured sockets, except a kind that the service manager has
// handed over.
func (d *listeners) open(o Options, given []net.Listener) (err error) {
	d.all = given
	settings := o.Loaded.Daemon
	var unix, tcp bool
	for _, l := range given {
		unix, tcp = unix || l.Addr().Network() == "unix", tcp || l.Addr().Network() == "tcp"
	}
	if !unix {
		if err := d.openSocket(settings); err != nil {
			return err
		}
	}
	if settings.TLSCert != "" {
		if d.tls, err = openCertificate(settings.TLSCert, settings.TLSKey, o.Logger); err != nil {
			return err
		}
	}
	if !tcp && settings.Listen != "" {
		l, err := net.Listen("tcp", settings.Listen)
		if err != nil {
			return notListening(settings.Listen, err)
		}
		d.all, tcp = append(d.all, l), true
	}
	if d.tcp = tcp; !tcp {
		return nil
	}
	if err := d.guard(o.State); err != nil {
		return err
	}
	for i, l := range d.all {
		if d.tls != nil && l.Addr().Network() == "tcp" {
			d.all[i] = tls.NewListener(l, d.tls.config())
		}
	}
	return nil
}

// notListening is the error of a daemon that gets no port.
func notListening(address string, err error) error {
	remedy := "name another port"
	if errors.Is(err, syscall.EACCES) {
		remedy += ", or, for one below 1024, give the daemon CAP_NET_BIND_SERVICE: a packaged unit needs CapabilityBoundingSet=CAP_NET_BIND_SERVICE in a drop-in, and the rootless one AmbientCapabilities=CAP_NET_BIND_SERVICE as well"
	}
	return fmt.Errorf("cannot listen on %s: %w; %s", address, err, remedy)
}

func (d *listeners) openSocket(settings config.Daemon) error {
	path, err := SocketPath(settings)
	if err != nil {
		return err
	}
	if d.socket, err = openSocket(path, cmp.Or(settings.SocketMode, defaultSocketMode), settings.SocketGroup, settings.Socket == ""); err != nil {
		return err
	}
	d.all = append(d.all, d.socket)
	return nil
}

// guard requires a token of TCP clients.
func (d *listeners) guard(state string) (err error) {
	for _, l := range d.all {
		if a, ok := l.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() && d.tls == nil {
			return fmt.Errorf("%s is not this machine's alone: set tls, or listen on 127.0.0.1 and let a proxy with TLS stand before it", a)
		}
	}
	if state == "" {
		return errors.New("to listen on TCP the daemon needs a folder for its token: name one with --state")
	}
	if err := d.openToken(state); err != nil {
		return err
	}
	d.metrics, err = httpapi.LoadToken(filepath.Join(state, MetricsTokenName))
	return err
}

// openToken reads the single token of earlier versions, which still lets its bearer do
// anything. It is made only if there is no other way in.
func (d *listeners) openToken(state string) error {
	path := filepath.Join(state, TokenName)
	_, err := os.Lstat(path)
	d.old = err == nil
	others, err := tokens.Open(state).List()
	if err != nil {
		return err
	}
	if !d.old && slices.ContainsFunc(others, func(t tokens.Token) bool { return t.Valid(time.Now()) }) {
		return nil
	}
	d.token, err = httpapi.LoadToken(path)
	return err
}

func (d *listeners) close() {
	for _, l := range d.all {
		_ = l.Close()
	}
	if d.socket != nil {
		d.socket.release()
	}
}
