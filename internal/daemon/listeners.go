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

// maxDoors bounds the listeners that a service manager hands over.
const maxDoors = 16

// doors are where clients come in.
type doors struct {
	listeners []net.Listener
	token     string // of clients on TCP; empty if there is no TCP
	metrics   string // the token of those that may see the metrics alone
	socket    *socket
}

// open opens what is configured, but for a kind of which a service manager has
// handed one over.
func (d *doors) open(o Options, given []net.Listener) error {
	d.listeners = given
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
		d.listeners, tcp = append(d.listeners, l), true
	}
	if !tcp {
		return nil
	}
	return d.guard(o.State)
}

func (d *doors) openSocket(settings config.Daemon) error {
	path, err := SocketPath(settings)
	if err != nil {
		return err
	}
	if d.socket, err = openSocket(path, cmp.Or(settings.SocketMode, defaultSocketMode), settings.SocketGroup, settings.Socket == ""); err != nil {
		return err
	}
	d.listeners = append(d.listeners, d.socket)
	return nil
}

// guard has TCP clients bring a token.
func (d *doors) guard(state string) (err error) {
	for _, l := range d.listeners {
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

func (d *doors) close() {
	for _, l := range d.listeners {
		_ = l.Close()
	}
	if d.socket != nil {
		d.socket.release()
	}
}
