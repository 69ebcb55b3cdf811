package fleetops

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet/engine"
	"github.com/toolhost/toolhost/internal/cli/doctor"
	"github.com/toolhost/toolhost/internal/journal/state"
	"github.com/toolhost/toolhost/internal/tools/config"
)

// renewBefore is how long before its end a certificate is warned of.
const renewBefore = 14 * 24 * time.Hour

// Examine looks at a configured fleet: its key and certificate, and what the daemon that runs
// it says of its workers, or why it says nothing. version is this program's.
func Examine(loaded *config.Loaded, version string, list api.Workers, unheard error) []doctor.Finding {
	p := Parties{Fleet: loaded.Fleet}
	dir, err := state.Folder(loaded.State)
	if err == nil {
		p.caller, err = publicKey(p.Key, dir)
	}
	findings := []doctor.Finding{checkKey(p.caller, err), checkEngine(p, list.Engine, time.Now())}
	switch {
	case unheard != nil:
		return append(findings, doctor.Fail("fleet daemon", unheard.Error(), ""))
	case list.Engine.Trouble != "": // workers cannot be heard, and are not to blame
		return findings
	}
	return append(findings, checkWorkers(p, append(list.Workers, absent(p, list)...), version)...)
}

func checkKey(caller string, err error) doctor.Finding {
	const check = "fleet key"
	if err != nil {
		return doctor.FailOf(check, err)
	}
	return doctor.OK(check, "workers know the daemon as "+caller)
}

// States of configured workers that the daemon does not list.
const (
	workerLeft    = "left"
	workerRemoved = "removed"
)

// absent are the configured workers that the daemon knows to have ended, or not to come back.
func absent(p Parties, list api.Workers) (absent []api.Worker) {
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
func checkEngine(p Parties, servers api.Engine, now time.Time) doctor.Finding {
	const check = "fleet engine"
	switch {
	case p.URL != "" && servers.URL == "":
		return doctor.Warn(check, "it is not known whether the daemon is connected to the NATS servers at "+p.URL, "start the daemon")
	case servers.Trouble != "":
		return doctor.Fail(check, fmt.Sprintf("the daemon has not been connected to the NATS servers at %s for %s: %s", servers.URL, silence(servers.SilentMs), servers.Trouble), servers.Remedy)
	case p.URL != "":
		return doctor.OK(check, "the daemon is connected to the NATS servers at "+p.URL)
	case p.Cert == "":
		return doctor.OK(check, "workers of this machine connect to "+p.Listen)
	}
	pair, err := engine.ReadCertificate(p.Cert, p.CertKey, now)
	if err != nil {
		return doctor.FailOf(check, err)
	}
	end := pair.Leaf.NotAfter
	detail := fmt.Sprintf("workers connect to %s; the certificate is valid until %s", p.Listen, end.Format(time.DateOnly))
	if now.Add(renewBefore).After(end) {
		return doctor.Warn(check, detail, "renew "+p.Cert)
	}
	return doctor.OK(check, detail)
}

// checkWorkers looks at those that are configured, and at those that the daemon hears.
func checkWorkers(p Parties, heard []api.Worker, version string) (findings []doctor.Finding) {
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
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		findings = append(findings, checkWorker(p, byName[name], version))
	}
	all := doctor.OK("fleet", fmt.Sprintf("%d of %d workers take calls", taking, len(byName)))
	switch {
	case taking > 0:
	case p.WorkersOnly():
		all = doctor.Fail(all.Check, all.Detail, "start a worker, or have this machine make calls: fleet: {local: prefer}")
	default:
		all = doctor.Warn(all.Check, all.Detail+": this machine makes all of them", "start a worker")
	}
	return append(findings, all)
}

// suspectAfter is for how long a worker that takes calls is silent at most.
const suspectAfter = 1500 * time.Millisecond

func checkWorker(p Parties, w api.Worker, version string) doctor.Finding {
	check, silent := "worker "+w.Name, silence(w.SilentMs)
	warn := func(detail, remedy string) doctor.Finding { return doctor.Warn(check, detail, remedy) }
	const (
		sameVersion = "install the same version on both"
		again       = "start it again when it is to take calls"
		takeOut     = "take it out of fleet.workers, or, to have it back, make another key on its machine (toolhost fleet key FILE), write that into fleet.workers, and start the daemon again"
	)
	switch {
	case w.State == "":
		return warn("the daemon has not heard it within the hour", "start it there: "+p.command(w.Name))
	case w.State == workerLeft:
		return warn("it was drained or stopped, and has ended", again+": "+p.command(w.Name))
	case w.State == workerRemoved && p.URL != "":
		return warn("it was removed; the NATS servers let its key in until their configuration has it no more", "give them what toolhost fleet nats-config prints, and "+takeOut)
	case w.State == workerRemoved:
		return warn("it was removed, and its key does not let it in any more", takeOut)
	case w.State == api.WorkerSuspect && silent < suspectAfter && w.Trouble == "":
		return warn("it is heard, and does not hear the daemon: calls go elsewhere",
			fmt.Sprintf("see its log: it may have been started without --caller %s, which is the daemon's key", p.known()))
	case w.State == api.WorkerSuspect && silent >= suspectAfter:
		return warn(fmt.Sprintf("it was last heard %s ago: calls go elsewhere", silent), "see to its machine, its log, and the network between")
	case w.State == api.WorkerDraining:
		return warn("it takes no more calls, and ends when it has none", again)
	case w.State == api.WorkerDrained:
		return warn("it takes no more calls of this daemon, which has drained it, and goes on for others", "start it again, or the daemon, when it is to take calls")
	case w.State == api.WorkerIncompatible:
		return doctor.Fail(check, fmt.Sprintf("its version %s and this one's %s speak different protocols: it gets no calls", w.Version, version), sameVersion)
	case w.Trouble != "":
		return warn(w.Trouble, "see to that machine, and to the worker's log")
	case w.Version != version:
		return warn(fmt.Sprintf("its version is %s, this one's %s", w.Version, version), sameVersion)
	}
	return doctor.OK(check, fmt.Sprintf("%d of %d slots are free", w.Free, w.Slots))
}

// address is what a worker connects to.
func (p Parties) address() string {
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
func (p Parties) known() string { return cmp.Or(p.caller, "KEY") }

// command starts a worker.
func (p Parties) command(name string) string {
	line := fmt.Sprintf("toolhost worker --url %s --name %s --key FILE --caller %s", p.address(), name, p.known())
	if p.ownAuthority() {
		line += " --ca FILE"
	}
	return line
}

// ownAuthority says whether systems may not trust the certificate that workers see.
func (p Parties) ownAuthority() bool {
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
