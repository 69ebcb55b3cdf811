package daemon

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	systemd "github.com/coreos/go-systemd/v22/daemon"
)

// manager is the service manager that has started this process, if one has (sd_notify(3)).
// With a nil connection nothing is sent.
type manager struct {
	conn  net.Conn
	beat  time.Duration // of the watchdog; 0 means none
	shown string        // the last status
}

// handedOver are variables for this process alone: no child may inherit them.
var handedOver = []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "LISTEN_PIDFDID"}

// takeOver takes what a service manager has passed: the way to notify it, and listening
// sockets. It must be called once, before there are children.
func takeOver() (*manager, []net.Listener, error) {
	given, err := listenAll(activation.Files(true))
	if err != nil {
		return nil, nil, err
	}
	beat, _ := systemd.SdWatchdogEnabled(true) // what cannot be read asks for nothing
	address := os.Getenv("NOTIFY_SOCKET")
	for _, name := range handedOver {
		_ = os.Unsetenv(name)
	}
	m := &manager{beat: beat / 2}
	if address != "" {
		if m.conn, err = net.Dial("unixgram", address); err != nil {
			return nil, nil, fmt.Errorf("cannot reach the service manager that has set NOTIFY_SOCKET: %w", err)
		}
	}
	return m, given, nil
}

// listenAll returns the listeners of sockets that were passed (sd_listen_fds(3)).
func listenAll(files []*os.File) (list []net.Listener, err error) {
	for i, file := range files[:min(len(files), maxListeners)] {
		l, err := net.FileListener(file)
		_ = file.Close()
		if err != nil {
			return nil, fmt.Errorf("the descriptor %d from the service manager is not a socket that listens: %w; use ListenStream= in the unit", 3+i, err)
		}
		list = append(list, l)
	}
	return list, nil
}

// watchdog ticks when alive is to be called; a nil channel is never.
func (m *manager) watchdog() (tick <-chan time.Time, stop func()) {
	if m.conn == nil || m.beat == 0 {
		return nil, func() {}
	}
	ticker := time.NewTicker(m.beat)
	return ticker.C, ticker.Stop
}

// tell sends lines to the manager without ever blocking the daemon.
func (m *manager) tell(lines ...string) {
	if m.conn != nil {
		_ = m.conn.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = m.conn.Write([]byte(strings.Join(lines, "\n")))
	}
}

func (m *manager) ready(status string) {
	m.shown = status
	m.tell("READY=1", "STATUS="+status)
}

func (m *manager) alive() { m.tell("WATCHDOG=1") }

func (m *manager) status(status string) {
	if status != m.shown {
		m.shown = status
		m.tell("STATUS=" + status)
	}
}

// reloading sends the time, too, by which the manager matches it to its own request
// (Type=notify-reload).
func (m *manager) reloading() {
	if m.conn != nil {
		m.tell("RELOADING=1", strings.TrimSpace(systemd.SdNotifyMonotonicUsec()), "STATUS=loading the configuration")
	}
}

// stopping sends how long stopping may take.
func (m *manager) stopping(limit time.Duration) {
	m.tell("STOPPING=1", "STATUS=waiting for calls that run", "EXTEND_TIMEOUT_USEC="+strconv.FormatInt(limit.Microseconds(), 10))
}

func (m *manager) close() {
	if m.conn != nil {
		_ = m.conn.Close()
	}
}
