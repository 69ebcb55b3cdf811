package audit

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/internal/journal"
)

// Syslog is a receiver of RFC 5424.
type Syslog struct {
	network, address string
	tls              *tls.Config // nil is without
	datagrams        bool
	host, pid        string

	conn net.Conn // nil before the first message and after an error
}

// NewSyslog takes the address of a receiver: unix:///PATH, udp://HOST:PORT,
// tcp://HOST:PORT or tls://HOST:PORT. config is for the last. It connects with the
// first record.
func NewSyslog(address string, config *tls.Config) (*Syslog, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("%q is not an address of a syslog receiver", address)
	}
	s := &Syslog{network: u.Scheme, address: u.Host, host: nilValue, pid: strconv.Itoa(os.Getpid())}
	if name, err := os.Hostname(); err == nil {
		s.host = header(name, 255)
	}
	switch u.Scheme {
	case "unix":
		s.network, s.address, s.datagrams = "unixgram", u.Path, true
	case "udp":
		s.datagrams = true
	case "tcp":
	case "tls":
		s.network, s.tls = "tcp", cmp.Or(config, &tls.Config{})
	default:
		return nil, fmt.Errorf("%q is not an address of a syslog receiver: it must begin with unix://, udp://, tcp:// or tls://", address)
	}
	return s, nil
}

const (
	dialLimit  = 10 * time.Second
	writeLimit = 10 * time.Second
)

// Send implements Sender. Over TCP a message counts as sent when the kernel has taken
// it: syslog has no answers.
func (s *Syslog) Send(ctx context.Context, records []journal.Audit) (sent int, err error) {
	if err := s.connect(ctx); err != nil {
		return 0, err
	}
	conn := s.conn // a write that fails by itself takes it away meanwhile
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })()
	for i := range records {
		if err := s.write(s.message(&records[i])); err != nil {
			s.hangUp()
			return sent, err
		}
		sent++
	}
	return sent, nil
}

func (s *Syslog) connect(ctx context.Context) (err error) {
	if s.conn != nil && s.gone() {
		s.hangUp()
	}
	if s.conn != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	if s.tls != nil {
		s.conn, err = (&tls.Dialer{Config: s.tls}).DialContext(ctx, s.network, s.address)
		return err
	}
	s.conn, err = new(net.Dialer).DialContext(ctx, s.network, s.address)
	if s.network == "unixgram" && err != nil { // it may take streams
		s.conn, err = new(net.Dialer).DialContext(ctx, "unix", s.address)
		if err == nil {
			s.network, s.datagrams = "unix", false
		}
	}
	return err
}

// gone says whether the other end of a stream has closed it: what is written to it
// would be lost without an error. Receivers of syslog never write, but TLS does.
func (s *Syslog) gone() bool {
	for !s.datagrams {
		switch n, err := waiting(s.conn); {
		case errors.Is(err, syscall.EAGAIN):
			return false
		case err != nil || n == 0 || s.tls == nil:
			return true
		}
		_ = s.conn.SetReadDeadline(time.Now().Add(time.Millisecond))
		if _, err := s.conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			return true
		}
	}
	return false
}

// waiting is whether anything waits to be read, which it leaves there: 0 bytes are the
// end, EAGAIN that nothing does (recv(2)).
func waiting(conn net.Conn) (n int, err error) {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return 0, err
	}
	outer := raw.Control(func(fd uintptr) {
		n, _, err = syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	})
	return n, cmp.Or(outer, err)
}

func (s *Syslog) write(message []byte) error {
	if !s.datagrams { // RFC 6587 and 5425: its length before it
		message = append(strconv.AppendInt(nil, int64(len(message)), 10), append([]byte{' '}, message...)...)
	}
	if err := s.conn.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil {
		return err
	}
	_, err := s.conn.Write(message)
	return err
}

func (s *Syslog) hangUp() {
	_ = s.conn.Close()
	s.conn = nil
	if s.network == "unix" {
		s.network, s.datagrams = "unixgram", true
	}
}

// Close implements Sender.
func (s *Syslog) Close() {
	if s.conn != nil {
		s.hangUp()
	}
}

const (
	authpriv        = 10 // facility
	warning, notice = 4, 5
	nilValue        = "-"
	// maxMessageBytes is what fits into a datagram of UDP everywhere.
	maxMessageBytes = 8 << 10
)

// message is a record as RFC 5424 has it: the action is its MSGID, and its text the
// record as JSON with its hash.
func (s *Syslog) message(a *journal.Audit) []byte {
	severity := notice
	if a.Refused() {
		severity = warning
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "<%d>1 %s %s toolhost %s %s - ", authpriv<<3|severity, a.Time.UTC().Format("2006-01-02T15:04:05.000000Z"), s.host, s.pid, header(a.Action, 32))
	out.Write(Text(a))
	return out.Bytes()[:min(out.Len(), maxMessageBytes)]
}

// Text is a record as JSON, on one line of ASCII, with its hash.
func Text(a *journal.Audit) []byte {
	raw, _ := json.Marshal(struct {
		journal.Audit
		Hash string `json:"hash,omitempty"`
	}{*a, a.Hash})
	return ascii(raw)
}

// ascii writes what is not as JSON's escapes.
func ascii(raw []byte) []byte {
	var out bytes.Buffer
	for _, r := range string(raw) {
		switch {
		case r < 0x80:
			out.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.Bytes()
}

// header is a field of a message's head: printable ASCII without spaces.
func header(field string, most int) string {
	field = strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '_'
		}
		return r
	}, field)
	if field == "" {
		return nilValue
	}
	return field[:min(len(field), most)]
}
