package config

import (
	"net"
	"strings"
)

// Fleet are the settings by which toolhost serve has calls made by workers.
type Fleet struct {
	// Listen is where workers connect; URL is that of an engine elsewhere instead. Both
	// empty: there are no workers.
	Listen, URL string
	// Cert and CertKey are the certificate of Listen, CA the file of certificates that
	// URL's may have been signed by.
	Cert, CertKey, CA string
	// Key is the file of the caller's nkey; empty is fleet.key in the state folder.
	Key string
	// Workers are the public keys of those that may join, by name.
	Workers map[string]string
	// Local is prefer or never; empty is prefer.
	Local string
}

// On says whether there can be workers.
func (f Fleet) On() bool { return f.Listen != "" || f.URL != "" }

const localNever = "never"

// WorkersOnly says whether no call is made on this machine.
func (f Fleet) WorkersOnly() bool { return f.On() && f.Local == localNever }

// OnWorkersOnly says whether no call of a tool may run on this machine.
func (l *Loaded) OnWorkersOnly(t Tool) bool { return len(t.Where) > 0 || l.Fleet.WorkersOnly() }

var fleetKeys = []*key{
	field(key{name: "listen", kind: listenKind, std: "(none)", doc: "where workers connect to the daemon's own NATS engine, such as `0.0.0.0:7420`; without `cert` on loopback only"},
		func(l *Loaded) *string { return &l.Fleet.Listen }),
	field(key{name: "cert", kind: pathKind("path", pathFile), std: "(none)", doc: "PEM file of the certificate that workers see"},
		func(l *Loaded) *string { return &l.Fleet.Cert }),
	field(key{name: "certKey", kind: pathKind("path", pathFile), std: "(none)", doc: "PEM file of its key"},
		func(l *Loaded) *string { return &l.Fleet.CertKey }),
	{
		name: "workers", kind: publicKeyKind, names: workerNames, std: "{}", doc: "the workers that may connect to `listen`, and that calls with secrets go to: the public key of each, as `toolhost fleet key` prints it",
		sets: to(func(l *Loaded, s setting) { put(&l.Fleet.Workers, s.name, s.data.(string)) }),
	},
	field(key{name: "url", kind: fleetURLKind, std: "(none)", doc: "NATS servers to use in place of `listen`, `tls://HOST:PORT`, several separated by commas"},
		func(l *Loaded) *string { return &l.Fleet.URL }),
	field(key{name: "ca", kind: pathKind("path", pathFile), std: "(the system's)", doc: "PEM file with the certificate authorities to trust for them"},
		func(l *Loaded) *string { return &l.Fleet.CA }),
	field(key{name: "key", kind: pathKind("path", pathAny), std: "(fleet.key in the state folder, made if it is missing)", doc: "file of the daemon's own nkey, by which workers know it"},
		func(l *Loaded) *string { return &l.Fleet.Key }),
	field(key{name: "local", kind: enum("prefer", localNever), std: "prefer", doc: "whether calls run on this machine while it has a free slot, and when no worker takes them"},
		func(l *Loaded) *string { return &l.Fleet.Local }),
}

var publicKeyKind = scalarLike("public nkey", `^U[A-Z2-7]{55}$`, "is not a public key: it begins with U and has 56 characters, as toolhost fleet key prints it")

var workerNames = namesLike("WORKER", `^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`, "is not a name for a worker: take small letters, digits and -, at most 63")

var labelNames = namesLike("LABEL", `^[a-z][a-z0-9._/-]{0,62}$`, "is not a name for a label: begin with a small letter, and go on with small letters, digits, ., _, / and -")

// WrongLabel says what is wrong with the name of a label; empty if nothing is.
func WrongLabel(name string) string { return labelNames.check(name) }

var fleetURLKind = scalar("URL of NATS servers", `^(nats|tls)://[^/?#@,]+:[0-9]+(,(nats|tls)://[^/?#@,]+:[0-9]+)*$`, func(s string) (any, string) {
	for _, each := range strings.Split(s, ",") {
		scheme, host, _ := strings.Cut(each, "://")
		plain := scheme == "nats"
		_, port, _ := net.SplitHostPort(host)
		switch {
		case !plain && scheme != "tls" || host == "" || strings.ContainsAny(host, "/?#@"):
			return nil, "is not a URL of NATS servers: write tls://HOST:PORT"
		case port == "":
			return nil, "has no port: write " + scheme + "://" + host + ":7420, or what the servers' is"
		case plain && !IsLoopback(host):
			return nil, "would be unencrypted through the network: write tls://" + host
		}
	}
	return s, ""
})

// fleet checks settings together.
func (b *builder) fleet() {
	f := b.loaded.Fleet
	complain := func(key, format string, args ...any) {
		if s, ok := b.root.set["fleet."+key]; ok {
			b.complain(s.node, format, args...)
		}
	}
	switch {
	case f.Listen != "" && f.URL != "":
		complain("url", "listen and url exclude each other: take out one of them")
	case b.failed("fleet.cert", "fleet.certKey"): // that is said already
	case (f.Cert == "") != (f.CertKey == ""):
		complain("cert", "cert needs certKey")
		complain("certKey", "certKey needs cert")
	case f.Listen != "" && f.Cert == "" && !IsLoopback(f.Listen):
		complain("listen", "other machines reach %s, and without TLS all can read along: give cert and certKey, or listen on 127.0.0.1", quoted(f.Listen))
	}
}
