// Package wire is what the host and the launcher say to one another: the
// launcher's argument vector, and the messages on its control socket.
//
// The control socket is a SOCK_SEQPACKET pair (unix(7)), so that a message is
// read whole or not at all. Its end of file is the lifeline: only the host
// holds the other end, and a launcher that reads EOF ends its whole tree.
package wire

import (
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
)

// File descriptors that the launcher is born with; the tool's own extra files
// follow ControlFD, after KillFD where Options.Kill is set.
const (
	ControlFD = 3
	KillFD    = 4
)

// Threads bounds the tasks of a launcher while a tool runs (6 to 8 by Go's
// scheduler). It starts all of them before the tool, so a tool that fills
// pids.max cannot starve it; its group's pids limit is the tool's own plus this.
const Threads = 8

// MaxMessageBytes bounds a message in either direction.
const MaxMessageBytes = 512

// Kinds of message, the first byte of each.
const (
	// Launcher to host. Ready carries the socket folder's descriptor.
	KindReady   byte = 'R'
	KindStarted byte = 'S'
	KindFailed  byte = 'E'
	KindExited  byte = 'X'
	// Host to launcher: the time left until the launcher ends its tree.
	KindTimer byte = 'T'
)

// Options is what a launcher is told in its first argument.
type Options struct {
	// Namespaced says that the launcher is PID 1 of a PID namespace and owns
	// its mount namespace.
	Namespaced bool
	// Proc asks for a new /proc that shows this PID namespace.
	Proc bool
	// Kill says that KillFD is an open cgroup.kill of the call's group, to be
	// written where ending the launcher does not end the tree.
	Kill bool
	// Extra is how many files follow for the tool, as its descriptors 3 and up.
	Extra int
	// TimerNS is the time, in nanoseconds from start, after which the launcher
	// ends the tree by itself; 0 is never.
	TimerNS int64
	// SocketDir is where the tool puts its socket; the launcher covers it with
	// a small tmpfs of its own where it is namespaced. Empty: none.
	SocketDir string
	// Dir is the tool's working directory.
	Dir string
	// Path is the executable.
	Path string
}

const fields = 8

var errOptions = errors.New("malformed launcher options")

// Encode renders o as one argument. Paths cannot hold NUL, and fields are
// separated by newlines that are escaped in paths.
func (o Options) Encode() string {
	return strings.Join([]string{
		flag(o.Namespaced), flag(o.Proc), flag(o.Kill),
		strconv.Itoa(o.Extra), strconv.FormatInt(o.TimerNS, 10),
		strconv.Quote(o.SocketDir), strconv.Quote(o.Dir), strconv.Quote(o.Path),
	}, "\n")
}

// Decode is the inverse of Encode.
func Decode(s string) (Options, error) {
	f := strings.Split(s, "\n")
	if len(f) != fields {
		return Options{}, errOptions
	}
	extra, err1 := strconv.Atoi(f[3])
	timer, err2 := strconv.ParseInt(f[4], 10, 64)
	sock, err3 := strconv.Unquote(f[5])
	dir, err4 := strconv.Unquote(f[6])
	path, err5 := strconv.Unquote(f[7])
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil || extra < 0 || timer < 0 {
		return Options{}, errOptions
	}
	for _, v := range f[:3] {
		if v != "0" && v != "1" {
			return Options{}, errOptions
		}
	}
	return Options{
		Namespaced: f[0] == "1", Proc: f[1] == "1", Kill: f[2] == "1",
		Extra: extra, TimerNS: timer, SocketDir: sock, Dir: dir, Path: path,
	}, nil
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// Failure says which step of a launcher failed, and how.
type Failure struct {
	Step  string
	Errno uint32
}

// AppendFailure renders a KindFailed message.
func AppendFailure(b []byte, f Failure) []byte {
	b = append(b, KindFailed)
	b = binary.LittleEndian.AppendUint32(b, f.Errno)
	step := f.Step
	if limit := MaxMessageBytes - 5; len(step) > limit {
		step = step[:limit]
	}
	return append(b, step...)
}

// ParseFailure reads a KindFailed message.
func ParseFailure(b []byte) (Failure, bool) {
	if len(b) < 5 || b[0] != KindFailed {
		return Failure{}, false
	}
	return Failure{Step: string(b[5:]), Errno: binary.LittleEndian.Uint32(b[1:5])}, true
}

// AppendNumber renders a message of one number: KindExited with the raw wait
// status, KindTimer with nanoseconds.
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
