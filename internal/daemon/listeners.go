package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"path/filepath"

	"github.com/toolhost/toolhost/internal/config"
	"github.com/toolhost/toolhost/internal/httpapi"
)

// maxListeners bounds the listeners that a service manager hands over.
const maxListeners = 16

// listeners are the sockets of the API, with the tokens for TCP.
type listeners struct {
	all     []net.Listener
	token   string // of clients on TCP; empty if there is no TCP
	metrics string // the token of those that may see the metrics alone
	socket  *socket
}

// open opens the configured sockets, except a kind that the service manager has
// handed over.
func (d *listeners) open(o Options, given []net.Listener) error {
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
	if !tcp && settings.Listen != "" {
		l, err := net.Listen("tcp", settings.Listen)
		if err != nil {
			return fmt.Errorf("cannot listen on %s: %w; name another port", settings.Listen, err)
		}
		d.all, tcp = append(d.all, l), true
	}
	if !tcp {
		return nil
	}
	return d.guard(o.State)
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

// guard has TCP clients bring a token.
func (d *listeners) guard(state string) (err error) {
	for _, l := range d.all {
		if a, ok := l.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() {
			return fmt.Errorf("%s is not this machine's alone: listen on 127.0.0.1, and let a proxy with its own authentication stand before it", a)
		}
	}
	if state == "" {
		return errors.New("to listen on TCP the daemon needs a folder for its token: name one with --state")
	}
	if d.token, err = httpapi.LoadToken(filepath.Join(state, TokenName)); err != nil {
		return err
	}
	d.metrics, err = httpapi.LoadToken(filepath.Join(state, MetricsTokenName))
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
