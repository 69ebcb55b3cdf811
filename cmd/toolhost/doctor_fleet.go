//go:build !nofleet

package main

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet/engine"
)

// renewBefore is how long before its end a certificate is warned of.
const renewBefore = 14 * 24 * time.Hour

// examineFleet looks at the configured fleet: its key and certificate, and what the daemon
// that runs it hears of each worker.
func examineFleet(ctx context.Context, flags remoteFlags) []finding {
	loaded, err := readFleet(flags.config)
	if err != nil {
		return []finding{{"fleet", levelFail, err.Error(), ""}}
	}
	p := parties{Fleet: loaded.Fleet}
	p.caller, err = callerOf(loaded)
	findings := []finding{checkKey(p.caller, err)}
	var list api.Workers
	err = flags.ask(func(daemon *remote) (err error) {
		list, err = daemon.Workers(ctx)
		return err
	})
	findings = append(findings, checkEngine(p, list.Engine, time.Now()))
	switch {
	case err != nil:
		return append(findings, finding{"fleet daemon", levelFail, err.Error(), ""})
	case list.Engine.Trouble != "": // workers cannot be heard, and are not to blame
		return findings
	}
	return append(findings, checkWorkers(p, append(list.Workers, absent(p, list)...))...)
}

func checkKey(caller string, err error) finding {
	if err != nil {
		return failure("fleet key", err)
	}
	return finding{"fleet key", levelOK, "workers know the daemon as " + caller, ""}
}

// States of configured workers that the daemon does not list.
const (
	workerLeft    = "left"
	workerRemoved = "removed"
)

// absent are the configured workers that the daemon knows to have ended, or not to come back.
func absent(p parties, list api.Workers) (absent []api.Worker) {
	for state, names := range map[string][]string{workerLeft: list.Left, workerRemoved: list.Removed} {
		for _, name := range names {
			if _, configured := p.Workers[name]; configured {
				absent = append(absent, api.Worker{Name: name, State: state})
			}
		}
	}
	return absent
}

// checkEngine looks at where workers connect, at the certificate that they see there, and at
// what the daemon says of servers, which is nothing if it was not reached.
func checkEngine(p parties, servers api.Engine, now time.Time) finding {
	const check = "fleet engine"
	f := p.Fleet
	switch {
	case f.URL != "" && servers.URL == "":
		return finding{check, levelWarn, "it is not known whether the daemon is connected to the NATS servers at " + f.URL, "start the daemon"}
	case servers.Trouble != "":
		silent := (time.Duration(servers.SilentMs) * time.Millisecond).Round(100 * time.Millisecond)
		return finding{check, levelFail, fmt.Sprintf("the daemon has not been connected to the NATS servers at %s for %s: %s", servers.URL, silent, servers.Trouble), servers.Remedy}
	case f.URL != "":
		return finding{check, levelOK, "the daemon is connected to the NATS servers at " + f.URL, ""}
	case f.Cert == "":
		return finding{check, levelOK, "workers of this machine connect to " + f.Listen, ""}
	}
	pair, err := engine.ReadCertificate(f.Cert, f.CertKey, now)
	if err != nil {
		return failure(check, err)
	}
	end := pair.Leaf.NotAfter
	found := finding{check, levelOK, fmt.Sprintf("workers connect to %s; the certificate is valid until %s", f.Listen, end.Format(time.DateOnly)), ""}
	if now.Add(renewBefore).After(end) {
		found.Level, found.Remedy = levelWarn, "renew "+f.Cert
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

// known is the daemon's key in a worker's command line.
func (p parties) known() string { return cmp.Or(p.caller, "KEY") }

// command starts a worker.
func (p parties) command(name string) string {
	line := fmt.Sprintf("toolhost worker --url %s --name %s --key FILE --caller %s", p.address(), name, p.known())
	if p.ownAuthority() {
		line += " --ca FILE"
	}
	return line
}

// ownAuthority says whether systems may not trust the certificate that workers see.
func (p parties) ownAuthority() bool {
	if p.URL != "" || p.Cert == "" {
		return p.CA != ""
	}
	pair, err := engine.ReadCertificate(p.Cert, p.CertKey, time.Now())
	if err != nil {
		return true
	}
	chain := x509.NewCertPool()
	for _, each := range pair.Certificate[1:] {
		if c, err := x509.ParseCertificate(each); err == nil {
			chain.AddCert(c)
		}
	}
	_, err = pair.Leaf.Verify(x509.VerifyOptions{Intermediates: chain})
	return err != nil
}

// suspectAfter is for how long a worker that takes calls is silent at most.
const suspectAfter = 1500 * time.Millisecond

func checkWorker(p parties, w api.Worker) finding {
	found := finding{"worker " + w.Name, levelWarn, "", ""}
	silent := (time.Duration(w.SilentMs) * time.Millisecond).Round(100 * time.Millisecond)
	switch {
	case w.State == "":
		found.Detail, found.Remedy = "the daemon has not heard it within the hour", "start it there: "+p.command(w.Name)
	case w.State == workerLeft:
		found.Detail, found.Remedy = "it was drained or stopped, and has ended", "start it again when it is to take calls: "+p.command(w.Name)
	case w.State == workerRemoved && p.URL != "":
		found.Detail, found.Remedy = "it was removed; the NATS servers let its key in until their configuration has it no more", "give them what toolhost fleet nats-config prints, and take it out of fleet.workers, or, to have it back, make another key on its machine (toolhost fleet key FILE), write that into fleet.workers, and start the daemon again"
	case w.State == workerRemoved:
		found.Detail, found.Remedy = "it was removed, and its key does not let it in any more", "take it out of fleet.workers, or, to have it back, make another key on its machine (toolhost fleet key FILE), write that into fleet.workers, and start the daemon again"
	case w.State == api.WorkerSuspect && silent < suspectAfter && w.Trouble == "":
		found.Detail = "it is heard, and does not hear the daemon: calls go elsewhere"
		found.Remedy = fmt.Sprintf("see its log: it may have been started without --caller %s, which is the daemon's key", p.known())
	case w.State == api.WorkerSuspect && silent >= suspectAfter:
		found.Detail, found.Remedy = fmt.Sprintf("it was last heard %s ago: calls go elsewhere", silent), "see to its machine, its log, and the network between"
	case w.State == api.WorkerDraining:
		found.Detail, found.Remedy = "it takes no more calls, and ends when it has none", "start it again when it is to take calls"
	case w.State == api.WorkerDrained:
		found.Detail, found.Remedy = "it takes no more calls of this daemon, which has drained it, and goes on for others", "start it again, or the daemon, when it is to take calls"
	case w.State == api.WorkerIncompatible:
		found.Level = levelFail
		found.Detail, found.Remedy = fmt.Sprintf("its version %s and this one's %s speak different protocols: it gets no calls", w.Version, readVersion().Version), "install the same version on both"
	case w.Trouble != "":
		found.Detail, found.Remedy = w.Trouble, "see to that machine, and to the worker's log"
	case w.Version != readVersion().Version:
		found.Detail, found.Remedy = fmt.Sprintf("its version is %s, this one's %s", w.Version, readVersion().Version), "install the same version on both"
	default:
		found.Level, found.Detail = levelOK, fmt.Sprintf("%d of %d slots are free", w.Free, w.Slots)
	}
	return found
}
