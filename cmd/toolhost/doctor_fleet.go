//go:build !nofleet

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/toolhost/toolhost/api"
)

// renewBefore is how long before its end a certificate is warned of.
const renewBefore = 14 * 24 * time.Hour

// examineFleet looks at the configured fleet: its key and certificate, and what the daemon
// that runs it hears of each worker.
func examineFleet(ctx context.Context, flags remoteFlags) []finding {
	p, err := readParties(flags.config)
	if err != nil {
		return []finding{{"fleet", levelFail, err.Error(), ""}}
	}
	findings := []finding{{"fleet key", levelOK, "workers know the daemon as " + p.caller, ""}, checkEngine(p, time.Now())}
	var list api.Workers
	err = flags.ask(func(daemon *remote) (err error) {
		list, err = daemon.Workers(ctx)
		return err
	})
	if err != nil {
		return append(findings, finding{"fleet daemon", levelFail, err.Error(), ""})
	}
	return append(findings, checkWorkers(p, list.Workers)...)
}

// checkEngine looks at where workers connect, and at the certificate that they see there.
func checkEngine(p parties, now time.Time) finding {
	const check = "fleet engine"
	f := p.Fleet
	switch {
	case f.URL != "":
		return finding{check, levelOK, "the NATS servers at " + f.URL, ""}
	case f.Cert == "":
		return finding{check, levelOK, "workers of this machine connect to " + f.Listen, ""}
	}
	pair, err := tls.LoadX509KeyPair(f.Cert, f.CertKey)
	if err != nil {
		return finding{check, levelFail, fmt.Sprintf("the certificate %s cannot be used: %v", f.Cert, err), "give cert and certKey a pair that belongs together"}
	}
	end := pair.Leaf.NotAfter
	found := finding{check, levelOK, fmt.Sprintf("workers connect to %s; the certificate is valid until %s", f.Listen, end.Format(time.DateOnly)), ""}
	if now.Add(renewBefore).After(end) {
		found.Level, found.Remedy = levelWarn, "renew "+f.Cert+", and start the daemon again"
	}
	if now.After(end) {
		found.Level, found.Detail = levelFail, fmt.Sprintf("the certificate %s was valid until %s: no worker connects", f.Cert, end.Format(time.DateOnly))
	}
	return found
}

// checkWorkers looks at those that are configured, and at those that the daemon hears.
func checkWorkers(p parties, heard []api.Worker) []finding {
	byName := map[string]api.Worker{}
	for name := range p.Workers {
		byName[name] = api.Worker{Name: name}
	}
	taking := 0
	for _, w := range heard {
		byName[w.Name] = w
		if w.State == api.WorkerTaking {
			taking++
		}
	}
	var findings []finding
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		findings = append(findings, checkWorker(p, byName[name]))
	}
	all := finding{"fleet", levelOK, fmt.Sprintf("%d of %d workers take calls", taking, len(byName)), ""}
	switch {
	case taking > 0:
	case p.WorkersOnly():
		all.Level, all.Remedy = levelFail, "start a worker, or have this machine make calls: fleet: {local: prefer}"
	default:
		all.Level, all.Detail, all.Remedy = levelWarn, all.Detail+": this machine makes all of them", "start a worker"
	}
	return append(findings, all)
}

// address is what a worker connects to.
func (p parties) address() string {
	if p.URL != "" {
		return p.URL
	}
	scheme := "nats"
	if p.Cert != "" {
		scheme = "tls"
	}
	host, port, _ := net.SplitHostPort(p.Listen)
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "THIS-MACHINE"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

func checkWorker(p parties, w api.Worker) finding {
	found := finding{"worker " + w.Name, levelWarn, "", ""}
	silent := (time.Duration(w.SilentMs) * time.Millisecond).Round(100 * time.Millisecond)
	switch {
	case w.State == "":
		found.Detail = "the daemon has not heard it within the hour"
		found.Remedy = fmt.Sprintf("start it there: toolhost worker --url %s --name %s --key FILE --caller %s", p.address(), w.Name, p.caller)
	case w.State == api.WorkerSuspect:
		found.Detail, found.Remedy = fmt.Sprintf("it was last heard %s ago, or does not hear the daemon: calls go elsewhere", silent), "see to its machine, its log, and the network between"
	case w.State == api.WorkerDraining:
		found.Detail, found.Remedy = "it takes no more calls, and ends when it has none", "start it again when it is to take calls"
	case w.State == api.WorkerDrained:
		found.Detail, found.Remedy = "it takes no more calls of this daemon, which has drained it, and goes on for others", "start it again, or the daemon, when it is to take calls"
	case w.State == api.WorkerIncompatible:
		found.Level = levelFail
		found.Detail, found.Remedy = fmt.Sprintf("its version %s and this one's %s speak different protocols: it gets no calls", w.Version, readVersion().Version), "install the same version on both"
	case w.Version != readVersion().Version:
		found.Detail, found.Remedy = fmt.Sprintf("its version is %s, this one's %s", w.Version, readVersion().Version), "install the same version on both"
	default:
		found.Level, found.Detail = levelOK, fmt.Sprintf("%d of %d slots are free", w.Free, w.Slots)
	}
	return found
}
