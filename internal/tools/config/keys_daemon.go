package config

import (
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
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
	// Listen is ADDRESS:PORT on TCP, port 0 a free one; empty means none. It is
	// loopback unless there is TLS.
	Listen string
	// TLSCert and TLSKey are the files of a certificate and its key; empty means without TLS.
	TLSCert, TLSKey string
	// PublicURL is where clients find the daemon otherwise; empty is nowhere. Proxies
	// are believed whom they ask for.
	PublicURL string
	Proxies   []netip.Prefix
	// StopWait is how long calls that run may go on when the daemon is to end;
	// 0 is 30 s.
	StopWait time.Duration
}

var socketKeys = []*key{
	field(key{name: "path", variable: "TOOLHOST_SOCKET", kind: pathKind("path", pathAny), std: "($XDG_RUNTIME_DIR/toolhost/toolhost.sock, or /run/toolhost/toolhost.sock as root)", doc: "its path"},
		func(l *Loaded) *string { return &l.Daemon.Socket }),
	field(key{name: "mode", kind: socketModeKind, std: "0600", doc: "file mode of the socket"},
		func(l *Loaded) *fs.FileMode { return &l.Daemon.SocketMode }),
	field(key{name: "group", kind: textKind, std: "(that of the daemon)", doc: "group of the socket's file; with `mode: 0660` its members may connect"},
		func(l *Loaded) *string { return &l.Daemon.SocketGroup }),
	{
		name: "uids", kind: listOf("list of user ids", uidKind), std: "(with a group everyone whom the mode lets in, else nobody)",
		doc: "users who may connect, apart from root and the daemon's own user, as far as `mode` and `group` let them open the socket's file", sets: to(func(l *Loaded, s setting) { l.Daemon.SocketUIDs = uidsOf(s.data.([]string)) }),
	},
}

var stopKeys = []*key{
	field(key{name: "wait", kind: durationKind, std: "30s", doc: "how long running calls may take to finish before they are ended"},
		func(l *Loaded) *time.Duration { return &l.Daemon.StopWait }),
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

// uidsOf are user ids that uidKind has read.
func uidsOf(list []string) (uids []uint32) {
	for _, id := range list {
		uid, _ := strconv.ParseUint(id, 10, 32)
		uids = append(uids, uint32(uid))
	}
	return uids
}

// listenKind is an address to listen on.
var listenKind = scalar("address such as 127.0.0.1:7070", `^([0-9.]+|localhost|\[[0-9A-Fa-f:.]+\]):[0-9]+$`, func(s string) (any, string) {
	host, port, err := net.SplitHostPort(s)
	if _, portErr := strconv.ParseUint(port, 10, 16); err != nil || portErr != nil {
		return nil, "is not an address: write HOST:PORT, such as 127.0.0.1:7070"
	}
	if _, err := netip.ParseAddr(host); host != "localhost" && err != nil {
		return nil, "does not begin with an address of this machine: write 127.0.0.1:" + port
	}
	return s, ""
})

// IsLoopback says whether only this machine can reach an address to listen on.
func IsLoopback(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// publicURLKind is where clients find the daemon.
var publicURLKind = scalar("URL without a path", `^https?://[^/?#@]+/?$`, func(s string) (any, string) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, "is not a URL: write https://HOST, or https://HOST:PORT"
	case u.Path != "" && u.Path != "/" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, "has more than a scheme and a host: the daemon must have a host of its own"
	case u.Scheme == "http" && !IsLoopback(net.JoinHostPort(u.Hostname(), "80")):
		return nil, "would send tokens unencrypted through the network: write https://"
	}
	return u.Scheme + "://" + strings.ToLower(u.Host), ""
})

// proxyKind is an address or network, as text. Unlike plainPrefix it refuses a network that
// is not its first address: one address may be meant, and more would be trusted.
var proxyKind = scalar("address or network", `^[0-9A-Fa-f:.]+(/[0-9]+)?$`, func(s string) (any, string) {
	p, err := prefixOf(s)
	switch {
	case err != nil || p.Masked() != p:
		return nil, "is not an address or network: write one such as 10.0.0.7 or 10.0.0.0/24"
	case p.Addr().Is4In6():
		return nil, ipv4InIPv6
	}
	return s, ""
})

var tlsKeys = []*key{
	field(key{name: "cert", kind: pathKind("path", pathFile), doc: "PEM file with the certificate and its chain"},
		func(l *Loaded) *string { return &l.Daemon.TLSCert }),
	field(key{name: "key", kind: pathKind("path", pathFile), doc: "PEM file with its private key"},
		func(l *Loaded) *string { return &l.Daemon.TLSKey }),
}

// daemon checks that tokens never go through a network unencrypted.
func (b *builder) daemon() {
	d := b.loaded.Daemon
	listen, cert, key := b.root.set["listen"], b.root.set["tls.cert"], b.root.set["tls.key"]
	switch {
	case (d.TLSCert == "") != (d.TLSKey == ""):
		one := cert
		if d.TLSCert == "" {
			one = key
		}
		b.complain(one.node, "tls needs both cert and key: set the other one, too")
	case d.Listen != "" && !IsLoopback(d.Listen) && d.TLSCert == "":
		b.complain(listen.node, "%s is not this machine's alone: set tls: {cert, key}, or write 127.0.0.1 and let a proxy with TLS stand before it", quoted(d.Listen))
	}
}
