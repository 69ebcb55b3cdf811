package config

import (
	"io/fs"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// Daemon are the settings of toolhost serve.
type Daemon struct {
	// Socket is the path of its unix socket; empty is the default place.
	Socket string
	// SocketMode is that of the socket's file; 0 is 0600. SocketGroup, a name or
	// number, is its group; empty leaves it.
	SocketMode  fs.FileMode
	SocketGroup string
	// SocketUIDs may connect beside root and the daemon's own user. None: with a
	// SocketGroup everyone whom the file's mode lets in, else nobody.
	SocketUIDs []uint32
	// Listen is HOST:PORT on loopback TCP, port 0 a free one; empty means none.
	Listen string
	// StopWait is how long calls that run may go on when the daemon is to end;
	// 0 is 30 s.
	StopWait time.Duration
}

var socketKeys = []*key{
	{
		name: "path", variable: "TOOLHOST_SOCKET", kind: pathKind("path", pathAny), std: "($XDG_RUNTIME_DIR/toolhost/toolhost.sock, or /run/toolhost/toolhost.sock as root)", doc: "where it is",
		sets: setsHost(func(l *Loaded, s setting) { l.Daemon.Socket = s.data.(string) }),
	},
	{
		name: "mode", kind: socketModeKind, std: "0600", doc: "mode of its file",
		sets: setsHost(func(l *Loaded, s setting) { l.Daemon.SocketMode = s.data.(fs.FileMode) }),
	},
	{
		name: "group", kind: textKind, std: "(that of the daemon)", doc: "group of its file; with `mode: 0660` its members may connect",
		sets: setsHost(func(l *Loaded, s setting) { l.Daemon.SocketGroup = s.data.(string) }),
	},
	{
		name: "uids", kind: listOf("list of user ids", uidKind), std: "(with a group everyone whom the mode lets in, else nobody)",
		doc: "who may connect beside root and the daemon's own user", sets: setsHost(func(l *Loaded, s setting) {
			l.Daemon.SocketUIDs = nil
			for _, text := range s.data.([]string) {
				uid, _ := strconv.ParseUint(text, 10, 32) // uidKind has read it
				l.Daemon.SocketUIDs = append(l.Daemon.SocketUIDs, uint32(uid))
			}
		}),
	},
}

var stopKeys = []*key{
	{
		name: "wait", kind: durationKind, std: "30s", doc: "how long calls that run may go on, before they are ended",
		sets: setsHost(func(l *Loaded, s setting) { l.Daemon.StopWait = s.data.(time.Duration) }),
	},
}

var socketModeKind = scalar("mode such as 0660", `^0?6[06][06]$`, func(s string) (any, string) {
	switch s {
	case "0600", "600", "0660", "660", "0606", "606", "0666", "666":
		mode, _ := strconv.ParseUint(s, 8, 32)
		return fs.FileMode(mode), ""
	}
	return nil, "is not a mode of a socket: write 0600, 0660 or 0666"
}).orNumber()

// uidKind gives text, as lists hold it.
var uidKind = &kind{name: "user id", schema: &jsonschema.Schema{Type: "integer", Minimum: new(0.0)}, read: func(_ *reader, n *node) (any, string) {
	if _, err := strconv.ParseUint(n.value, 10, 32); err != nil || n.shape != number {
		return nil, "is not a user id: write its number, as id -u prints it"
	}
	return n.value, ""
}}

// loopbackKind is an address that only this machine can reach.
var loopbackKind = scalar("address such as 127.0.0.1:7070", `^(127\.[0-9.]+|localhost|\[::1\]):[0-9]+$`, func(s string) (any, string) {
	host, port, err := net.SplitHostPort(s)
	if _, portErr := strconv.ParseUint(port, 10, 16); err != nil || portErr != nil {
		return nil, "is not an address: write HOST:PORT, such as 127.0.0.1:7070"
	}
	if ip, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !ip.IsLoopback()) {
		return nil, "is not this machine's alone: write 127.0.0.1:" + port + ", and let a proxy with its own authentication stand before it"
	}
	return s, ""
})
