package daemon

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// manager is the service manager that has started this process, if one has
// (sd_notify(3)). A nil connection tells nobody anything.
type manager struct {
	conn  net.Conn
	beat  time.Duration // of the watchdog; 0 means none
	shown string        // the last status
}

// handedOver are the variables between a service manager and this process
// alone: no child must find them.
var handedOver = []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "LISTEN_PIDFDID"}

// takeOver takes what a service manager has handed over: the way to it, and
// sockets that listen. It must be called once, before there are children.
func takeOver() (*manager, []net.Listener, error) {
	values := map[string]string{}
	for _, name := range handedOver {
		values[name] = os.Getenv(name)
		_ = os.Unsetenv(name)
	}
	given, err := activated(values["LISTEN_PID"], values["LISTEN_FDS"])
	if err != nil {
		return nil, nil, err
	}
	m := &manager{beat: watchdogTime(values["WATCHDOG_PID"], values["WATCHDOG_USEC"])}
	if address := values["NOTIFY_SOCKET"]; address != "" {
		if m.conn, err = net.Dial("unixgram", address); err != nil {
			return nil, nil, fmt.Errorf("cannot reach the service manager that has set NOTIFY_SOCKET: %w", err)
		}
	}
	return m, given, nil
}

// firstGiven is the first descriptor that is handed over (sd_listen_fds(3)).
const firstGiven = 3

func activated(pid, count string) (list []net.Listener, err error) {
	n, _ := strconv.Atoi(count)
	if pid != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	for fd := firstGiven; fd < firstGiven+min(n, maxListeners); fd++ {
		syscall.CloseOnExec(fd)
		file := os.NewFile(uintptr(fd), "socket "+strconv.Itoa(fd))
		l, err := net.FileListener(file)
		_ = file.Close()
		if err != nil {
			return nil, fmt.Errorf("the descriptor %d from the service manager is not a socket that listens: %w; use ListenStream= in the unit", fd, err)
		}
		list = append(list, l)
	}
	return list, nil
}

func watchdogTime(pid, usec string) time.Duration {
	n, err := strconv.ParseInt(usec, 10, 64)
	if err != nil || n <= 0 || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0
	}
	return time.Duration(n) * time.Microsecond / 2
}

// watchdog ticks when alive is to be called; a nil channel is never.
func (m *manager) watchdog() (tick <-chan time.Time, stop func()) {
	if m.conn == nil || m.beat == 0 {
		return nil, func() {}
	}
	ticker := time.NewTicker(m.beat)
	return ticker.C, ticker.Stop
}

// tell sends what is told to the manager; it must not hold up the daemon.
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

// reloading is told with the time, by which the manager knows for which of its
// own requests this is (Type=notify-reload).
func (m *manager) reloading() {
	if m.conn != nil {
		m.tell("RELOADING=1", "MONOTONIC_USEC="+strconv.FormatInt(monotonicMicros(), 10), "STATUS=loading the configuration")
	}
}

// stopping says how long it may take.
func (m *manager) stopping(limit time.Duration) {
	m.tell("STOPPING=1", "STATUS=waiting for calls that run", "EXTEND_TIMEOUT_USEC="+strconv.FormatInt(limit.Microseconds(), 10))
}

func (m *manager) close() {
	if m.conn != nil {
		_ = m.conn.Close()
	}
}

// monotonicMicros reads CLOCK_MONOTONIC (clock_gettime(2)), which package time
// tells nobody.
func monotonicMicros() int64 {
	const clockMonotonic = 1
	var t syscall.Timespec
	if _, _, e := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&t)), 0); e != 0 {
		return 0
	}
	return t.Nano() / 1000
}
