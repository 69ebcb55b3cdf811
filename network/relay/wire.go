package relay

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/net/http/httpproxy"
	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/seqpacket"
	"github.com/toolhost/toolhost/network"
)

// version is that of the messages; a relay of another version is not used.
const version = 4

// controlFD is where a relay finds its socket (SOCK_SEQPACKET).
const controlFD = 3

const (
	maxMessageBytes = 192 << 10
	maxFiles        = 2 + 2 + network.MaxListeners
)

// Session describes one process's network to a relay. The files that come
// with it are the namespace's counters (snmp, snmp6), the name server's sockets
// (UDP, TCP), and those that listen.
type Session struct {
	ID     string          `json:"id"`
	Grants []network.Grant `json:"grants"`
	Ask    bool            `json:"ask,omitempty"`
	Limits network.Limits  `json:"limits"`
	// Deny are the operator's own networks.
	Deny []netip.Prefix `json:"deny,omitempty"`
}

// Ask is a question for people: may the call reach this name?
type Ask struct {
	Session string `json:"session"`
	Name    string `json:"name"`
	Port    uint16 `json:"port"`
	ID      int    `json:"id"` // tells it from an earlier one about the same
}

// Verdict is what came of an Ask.
type Verdict string

// Verdicts.
const (
	AllowOnce Verdict = "once"
	AllowTurn Verdict = "turn"
	Denied    Verdict = "deny"
)

// Operations.
const (
	opHello  = "hello"
	opOpen   = "open"
	opBegin  = "begin" // of a call in a session
	opReport = "report"
	opClose  = "close"
	opAnswer = "answer"
	opAsk    = "ask"   // of the relay
	opLeft   = "left"  // of the relay
	opLimit  = "limit" // of the relay
)

// message is a request (with ID), its answer (with the same), or an event of the
// relay's (without).
type message struct {
	Op      string            `json:"op"`
	ID      uint64            `json:"id,omitempty"`
	Version int               `json:"version,omitempty"`
	Proxy   *httpproxy.Config `json:"proxy,omitempty"`
	Session *Session          `json:"session,omitempty"`
	Of      string            `json:"of,omitempty"` // the session's ID
	Call    string            `json:"call,omitempty"`
	Alone   bool              `json:"alone,omitempty"` // of a call that begins
	Drain   bool              `json:"drain,omitempty"`
	Ask     *Ask              `json:"ask,omitempty"`
	Verdict Verdict           `json:"verdict,omitempty"`
	Why     string            `json:"why,omitempty"`   // of a denial, or the limit
	Taken   int               `json:"taken,omitempty"` // by the question with that ID
	Report  *api.Network      `json:"report,omitempty"`
	Error   string            `json:"error,omitempty"`
}

// writeTime bounds how long a message waits for the other side to read.
const writeTime = 5 * time.Second

// errTooLarge says that a message is too large, and that nothing of it was sent.
var errTooLarge = errors.New("the message is too large")

// send writes one message with its files.
func send(conn *net.UnixConn, m message, files []*os.File) error {
	raw, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("cannot encode a message: %w", err)
	}
	if len(raw) > maxMessageBytes {
		return fmt.Errorf("%w: it has %d bytes, at most %d are possible", errTooLarge, len(raw), maxMessageBytes)
	}
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, 0, len(files))
		for _, file := range files {
			fds = append(fds, int(file.Fd())) // Fd leaves what came non-blocking as it is (Go 1.21)
		}
		rights = unix.UnixRights(fds...)
	}
	if err := conn.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return err
	}
	_, _, err = conn.WriteMsgUnix(raw, rights, nil)
	return err
}

// receiver reads messages.
type receiver struct {
	conn     *net.UnixConn
	buf, oob []byte
}

func newReceiver(conn *net.UnixConn) *receiver {
	return &receiver{conn, make([]byte, maxMessageBytes), make([]byte, unix.CmsgSpace(maxFiles*4))}
}

// next ends with io.EOF. It has no files where not all of them fit into this process.
func (r *receiver) next() (m message, files []*os.File, err error) {
	n, oobn, flags, err := seqpacket.Read(r.conn, r.buf, r.oob)
	files = filesOf(r.oob[:oobn])
	switch {
	case err == nil && flags&unix.MSG_TRUNC != 0:
		err = errors.New("a message came in part only")
	case err == nil:
		err = json.Unmarshal(r.buf[:n], &m)
	}
	if err != nil || flags&unix.MSG_CTRUNC != 0 {
		closeAll(files)
		files = nil
	}
	return m, files, err
}

func filesOf(oob []byte) (files []*os.File) {
	if len(oob) == 0 {
		return nil
	}
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			continue
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	return files
}

func closeAll(files []*os.File) {
	for _, file := range files {
		_ = file.Close()
	}
}
