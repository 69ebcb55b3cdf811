// Package wire is what host, zygote and launcher say to one another: requests
// for a birth, a launcher's options, and the messages on its control socket.
//
// The control socket is a SOCK_SEQPACKET pair (unix(7)), so that a message is
// read whole or not at all. Its end of file is the lifeline: only the host
// holds the other end, and a launcher that reads EOF ends its whole tree.
package wire

import "encoding/binary"

// MaxSockets bounds the sockets of a call's network, and SocketFiles are the
// files before them in KindSockets: /proc/net/snmp and snmp6 of its namespace.
const (
	MaxSockets  = 200
	SocketFiles = 2
)

// MaxMessageBytes bounds a message in either direction.
const MaxMessageBytes = 512

// Kinds of message, the first byte of each.
const (
	// Zygote to host: the launcher's process id, with its pidfd.
	KindBorn byte = 'B'
	// Launcher to host. Ready carries descriptors of the socket folder, if
	// there is one, and of the workspace, if there is one.
	// Sockets carries those of Root.Listen in their order, behind the namespace's
	// counters (SocketFiles).
	KindSockets byte = 'N'
	KindReady   byte = 'R'
	KindStarted byte = 'S'
	KindFailed  byte = 'E'
	KindExited  byte = 'X'
	// Host to launcher: the time left until the launcher ends its tree.
	KindTimer byte = 'T'
	// Host to launcher that waits: the Tool, in a file that comes with it.
	KindBegin byte = 'G'
)

// Failure says which step of a launcher failed, and how.
type Failure struct {
	Step  string
	Errno uint32
}

// ParseFailure reads a KindFailed message.
func ParseFailure(b []byte) (Failure, bool) {
	if len(b) < 5 || b[0] != KindFailed {
		return Failure{}, false
	}
	return Failure{Step: string(b[5:]), Errno: binary.LittleEndian.Uint32(b[1:5])}, true
}

// AppendNumber renders a message of one number: KindBorn with the process id,
// KindExited with the raw wait status, KindTimer with nanoseconds.
func AppendNumber(b []byte, kind byte, v uint64) []byte {
	return binary.LittleEndian.AppendUint64(append(b, kind), v)
}

// ParseNumber reads a message of one number.
func ParseNumber(b []byte) (uint64, bool) {
	if len(b) != 9 {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b[1:]), true
}
