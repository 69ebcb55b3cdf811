package sandbox

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/toolhost/toolhost/network"
	"github.com/toolhost/toolhost/sandbox/internal/wire"
)

// NetworkGrants is a private network namespace in which a relay outside serves the
// names and addresses of Policy.Grants (see Process.TakeSockets).
const NetworkGrants = "grants"

// resolver is a call's /etc/resolv.conf: no search list, so that every name is
// asked for as it is.
var resolver = wire.Text{Path: "/etc/resolv.conf", Content: "nameserver " + network.DNS.Addr().String() + "\n"}

// normalNetwork checks the grants, and puts them in their one form.
func (p *Policy) normalNetwork() (err error) {
	if p.network() != NetworkGrants && (len(p.Grants) > 0 || p.AskNetwork) {
		return fmt.Errorf("network %q and network grants contradict one another: leave one of them out", p.Network)
	}
	if p.network() != NetworkGrants {
		return nil
	}
	if p.tier() == TierNone {
		return fmt.Errorf("network grants need a sandbox: with tier %s the whole network is the call's; choose tier %s, or leave them out", TierNone, TierNative)
	}
	if p.Grants, err = network.Normalize(p.Grants); err != nil {
		return err
	}
	_, err = network.Arrange(p.Grants, p.AskNetwork)
	return err
}

// afterAsking stands among grants for the names that people are asked about.
const afterAsking = "others after asking"

// Reaches returns the policy's network mode, and its grants in their short form.
func (p Policy) Reaches() (mode string, grants []string) {
	for _, g := range p.Grants {
		grants = append(grants, g.String())
	}
	if p.AskNetwork {
		grants = append(grants, afterAsking)
	}
	return p.network(), grants
}

// Network returns the policy's network: NetworkNone, NetworkHost or NetworkGrants.
func (r Resolved) Network() string {
	if r.policy.tier() == TierNone {
		return NetworkHost
	}
	return r.policy.network()
}

// NetworkWarnings returns a warning if the grants take ports on every address, which the
// call's own servers then cannot use.
func (r Resolved) NetworkWarnings() []string {
	grants, ask, ok := r.Grants()
	arranged, err := network.Arrange(grants, ask)
	if taken := arranged.Taken(); ok && err == nil && len(taken) > 0 {
		return []string{fmt.Sprintf("the call's own servers cannot have the ports %s, which its network grants take on every address", strings.Trim(fmt.Sprint(taken), "[]"))}
	}
	return nil
}

// Grants returns the network grants in normal form, and whether people are asked about
// other names. ok is false if the network is not NetworkGrants.
func (r Resolved) Grants() (grants []network.Grant, ask, ok bool) {
	return r.policy.Grants, r.policy.AskNetwork, r.policy.network() == NetworkGrants
}

// reach plans the call's own network. Resolve has checked the grants.
func (p *Plan) reach(r Resolved) error {
	if r.policy.network() != NetworkGrants {
		return nil
	}
	arranged, err := network.Arrange(r.policy.Grants, r.policy.AskNetwork)
	if err != nil {
		return err
	}
	p.root.Addresses = []wire.Network{wireNetwork(netip.PrefixFrom(network.Own, network.Own.BitLen()))}
	for _, route := range arranged.Routes {
		p.root.Routes = append(p.root.Routes, wireNetwork(route))
	}
	p.listen(arranged)
	p.root.Files = append(p.root.Files, resolver)
	p.receipt.Grants = []string{}
	for _, g := range r.policy.Grants {
		p.receipt.Grants = append(p.receipt.Grants, g.String())
	}
	if r.policy.AskNetwork {
		p.receipt.Grants = append(p.receipt.Grants, afterAsking)
	}
	return nil
}

// listen plans the sockets: the name server's, UDP and TCP, and those of grants.
func (p *Plan) listen(arranged network.Plan) {
	dns := wire.Listener{Address: wireNetwork(netip.PrefixFrom(network.DNS.Addr(), 0)), Port: int64(network.DNS.Port())}
	udp := dns
	udp.Datagram = true
	p.root.Listen = []wire.Listener{udp, dns}
	for _, at := range arranged.Listen {
		p.root.Listen = append(p.root.Listen, wire.Listener{Address: wireNetwork(netip.PrefixFrom(at.Addr(), 0)), Port: int64(at.Port())})
	}
}

func wireNetwork(p netip.Prefix) wire.Network {
	n := wire.Network{V6: p.Addr().Is6(), Bits: int64(p.Bits())}
	if !n.V6 {
		b := p.Addr().As4()
		n.Low = int64(binary.BigEndian.Uint32(b[:]))
		return n
	}
	b := p.Addr().As16()
	n.High, n.Low = int64(binary.BigEndian.Uint64(b[:8])), int64(binary.BigEndian.Uint64(b[8:]))
	return n
}

// Sockets are the sockets of a call's network namespace. They keep it alive: close
// them, or pass them to a process that does.
type Sockets struct {
	// Counters are /proc/net/snmp and /proc/net/snmp6 of the namespace.
	Counters [2]*os.File
	// UDP and TCP are the name server's sockets, Listen those of the plan's grants.
	UDP, TCP *os.File
	Listen   []*os.File
}

// Files returns all sockets and counters, in the order of the fields.
func (s *Sockets) Files() []*os.File {
	return append([]*os.File{s.Counters[0], s.Counters[1], s.UDP, s.TCP}, s.Listen...)
}

// Close closes all of them.
func (s *Sockets) Close() {
	for _, file := range s.Files() {
		_ = file.Close()
	}
}

// TakeSockets waits for the sockets of a call with network grants. The caller owns them and
// must close them. The launcher sends them long before the tool runs. TakeSockets returns nil
// if the start failed or ctx ended.
func (p *Process) TakeSockets(ctx context.Context) *Sockets {
	select {
	case <-p.arranged:
	case <-p.ready:
	case <-ctx.Done():
	}
	return p.sockets.Swap(nil)
}

// fewestSockets are the counters and the name server's.
const fewestSockets = wire.SocketFiles + 2

// onSockets takes the sockets; those of a malformed message are closed by the
// caller.
func (p *Process) onSockets(files []*os.File) {
	if len(files) < fewestSockets || closed(p.arranged) {
		return
	}
	s := &Sockets{Counters: [2]*os.File{files[0], files[1]}, UDP: files[2], TCP: files[3]}
	s.Listen = append(s.Listen, files[fewestSockets:]...)
	p.sockets.Store(s)
	clear(files)
	close(p.arranged)
}

// closeSockets closes those that nobody has taken.
func (p *Process) closeSockets() {
	if s := p.sockets.Swap(nil); s != nil {
		s.Close()
	}
}

// network is the policy's network, with the word left out where grants say it.
func (p Policy) network() string {
	if len(p.Grants) > 0 || p.AskNetwork {
		return cmp.Or(p.Network, NetworkGrants)
	}
	return cmp.Or(p.Network, NetworkNone)
}
