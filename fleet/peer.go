package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet/internal/lease"
	"github.com/toolhost/toolhost/fleet/internal/link"
	"github.com/toolhost/toolhost/fleet/internal/place"
	"github.com/toolhost/toolhost/fleet/internal/seal"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
	"github.com/toolhost/toolhost/internal/text"
)

// peer is a worker, as this caller knows it. Fields are guarded by Fleet.mu.
type peer struct {
	name, epoch     string
	watch           lease.Watch
	since           time.Duration // of the epoch
	beat            *fleetv1.Beat
	offered         int // since that beat
	frames          *nats.Subscription
	session         *seal.Session // of this epoch; nil if its curve key cannot be used
	cut             bool          // in this epoch it has ignored credit, and is not listened to
	drain           string        // the epoch that is to drain
	refused         bool          // something of it was, and logged
	duplicate       string        // epoch of another process with its name and key, heard since the last beat
	duplicateLogged bool
	duplicateHeard  time.Duration // when
	refuses         uint64        // messages, in this epoch
}

const (
	// suspectAfter is when a worker that is not heard gets no more offers.
	suspectAfter = 3 * beatEvery
	// forgetAfter is when one that is not heard is not shown any more.
	forgetAfter = time.Hour
	// maxPeers bounds them; the engine lets in only those that it knows.
	maxPeers = 4096
	// maxRefusals is how many a beat may add to what was refused, whatever it says.
	maxRefusals = 4096
	// maxVersion bounds what a worker says to be its version.
	maxVersion = 100
)

var began = time.Now()

// now is this caller's clock.
func now() time.Duration { return time.Since(began) }

// hear takes a worker's beat.
func (f *Fleet) hear(m *nats.Msg) {
	name := link.Token(m.Subject, 3)
	b := &fleetv1.Beat{}
	if link.CheckName(name) != nil || proto.Unmarshal(m.Data, b) != nil || b.Number == 0 || b.Epoch == "" || len(b.Epoch) > 64 {
		f.refuse(name, "it is not a beat")
		return
	}
	if b.LeaseMs < lease.Min.Milliseconds() || b.LeaseMs > lease.Max.Milliseconds() {
		f.refuse(name, "no worker has such a lease") // calls are waited for by it
		return
	}
	b.Version = api.Cut(b.Version, maxVersion)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.removed[name] {
		return
	}
	p := f.peers[name]
	if p == nil {
		if len(f.peers) >= maxPeers {
			return
		}
		p = &peer{name: name}
	}
	fresh := p.epoch != b.Epoch
	if fresh && p.lives() {
		p.duplicate, p.duplicateHeard = b.Epoch, now()
		return
	}
	if fresh && (p.frames == nil || p.cut) {
		sub, err := f.conn.Subscribe(link.FrameSubject(f.config.Key.Public(), name, "*"), f.receive)
		if err != nil {
			f.config.Logger.Warn("cannot hear a worker", "worker", name, "error", err)
			return
		}
		p.frames, p.cut, f.peers[name] = sub, false, p
	}
	if fresh {
		f.config.Logger.Info("a worker is there", "worker", name, "slots", b.Slots, "version", b.Version)
		if p.refuses = 0; p.epoch == "" {
			p.refuses = b.Refused // what was before this caller knew of it is not news
		}
		p.epoch, p.watch, p.since, p.duplicate, p.duplicateLogged = b.Epoch, lease.Watch{}, now(), "", false
		p.session, _ = f.curve.CallerSession(b.Xkey, b.Epoch) // without one, what it is sent is signed
		if why := f.unlike(b); why != "" {
			f.config.Logger.Warn("a worker gets no calls", "worker", name, "why", why)
		}
	}
	if p.duplicate != "" && !p.duplicateLogged {
		p.duplicateLogged = true
		f.config.Logger.Warn("two processes have the name and the key of a worker, and the later one gets no calls: end it, or give it a name and a key of its own; it is not logged again", "worker", name)
	}
	if p.watch.Heard(b.Number, now()) {
		p.beat, p.offered = b, 0
	}
	if more := max(b.Refused, p.refuses) - p.refuses; more > 0 { // beats may be overtaken
		f.refused, p.refuses = f.refused+min(more, maxRefusals), b.Refused
	}
	if fresh {
		go f.echo() // so that it takes offers at once
		f.kickAll()
	}
}

// lives says whether the worker is heard: another process with its name and key takes its
// place only when it is not, or has left. One has left after suspectAfter at the earliest: each
// life is logged, and answered with an echo to all.
func (p *peer) lives() bool {
	return p.epoch != "" && p.watch.Silent(p.since, now()) < suspectAfter && !(p.beat.Leaving && now()-p.since >= suspectAfter)
}

// kickAll has each call look at its worker again. The caller holds mu.
func (f *Fleet) kickAll() {
	for _, a := range f.inboxes {
		a.of.kick()
	}
}

// beat echoes the workers' beats.
func (f *Fleet) beat() {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		f.echo()
		f.sendDrains()
		select {
		case <-tick.C:
		case <-f.closed:
			return
		}
	}
}

func (f *Fleet) echo() {
	b := &fleetv1.CallerBeat{Caller: f.config.Key.Public(), Life: f.life, Xkey: f.curve.Public(), Protocol: link.Protocol, Version: f.config.Version}
	f.mu.Lock()
	for _, p := range f.peers {
		if !f.removed[p.name] && p.watch.Silent(p.since, now()) < forgetAfter {
			b.Echoes = append(b.Echoes, &fleetv1.Echo{Worker: p.name, Epoch: p.epoch, Beat: p.watch.Echo()})
		}
	}
	f.mu.Unlock()
	if raw, err := f.config.Key.Seal(seal.Beat, b); err == nil {
		_ = f.conn.Publish(link.CallerBeat(b.Caller), raw) // a lost connection is told elsewhere
	}
}

// state is what the worker takes from the caller in this life: nothing, unless it hears
// it.
func (p *peer) state(life string) place.State {
	if p.watch.Silent(p.since, now()) >= suspectAfter {
		return place.Suspect
	}
	return p.toldState(life)
}

// toldState is the state by what it told last, however long ago.
func (p *peer) toldState(life string) place.State {
	switch {
	case p.beat.Draining, p.drain == p.epoch: // it takes nothing, whatever else it is
		return place.Draining
	case p.cut:
		return place.Suspect
	case p.beat.Protocol != link.Protocol:
		return place.Incompatible
	case !slices.Contains(p.beat.Hears, life):
		return place.Suspect
	}
	return place.Taking
}

func (p *peer) place(life string) place.Worker {
	return place.Worker{Name: p.name, State: p.state(life), Labels: p.beat.Labels, Free: int(p.beat.Free), Slots: int(p.beat.Slots), Offered: p.offered}
}

func (p *peer) lease() time.Duration { return time.Duration(p.beat.LeaseMs) * time.Millisecond }

// places are all workers that can be reached. The caller holds mu.
func (f *Fleet) places() (list []place.Worker) {
	if f.conn != nil && !f.conn.IsConnected() {
		return nil
	}
	for _, p := range f.peers {
		if f.shown(p) {
			list = append(list, p.place(f.life))
		}
	}
	return list
}

// shown says whether a worker belongs in a list: not if it has left, was removed or was
// not heard within the hour. The caller holds mu.
func (f *Fleet) shown(p *peer) bool {
	return !p.beat.Leaving && !f.removed[p.name] && p.watch.Silent(p.since, now()) < forgetAfter
}

// returns says whether a worker would take calls if it were heard again: one that has left,
// unless somebody has drained it, may be about to be started again.
func (p *peer) returns(life string) bool {
	if p.beat.Leaving {
		return p.drain != p.epoch && len(p.beat.Drains) == 0
	}
	told := p.toldState(life)
	return told == place.Taking || told == place.Suspect && !p.cut
}

// mayReturn says whether a worker fits that is not heard just now, or has left, for less than
// its lease.
func (f *Fleet) mayReturn(want place.Want) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.peers {
		if p.returns(f.life) && !f.removed[p.name] && p.watch.Silent(p.since, now()) < p.lease() && want.Fits(p.place(f.life)) {
			return true
		}
	}
	return false
}

// Workers returns the workers that were heard within the last hour and have not left, sorted
// by name.
func (f *Fleet) Workers() (list []api.Worker) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.peers {
		if !f.shown(p) {
			continue
		}
		list = append(list, api.Worker{
			Name: p.name, State: f.stateName(p), Free: max(0, int(p.beat.Free)), Slots: int(p.beat.Slots),
			Labels: maps.Clone(p.beat.Labels), Version: p.beat.Version, Trouble: p.trouble(), SilentMs: p.watch.Silent(p.since, now()).Milliseconds(),
		})
	}
	slices.SortFunc(list, func(a, b api.Worker) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// trouble is what people have to see to. A worker's own words are bounded.
func (p *peer) trouble() string {
	if p.duplicateLogged && now()-p.duplicateHeard < suspectAfter {
		return "another process has its name and its key, and gets no calls"
	}
	if p.cut {
		return "it has sent more than it may, and is not listened to until it is started again"
	}
	return api.Cut(p.beat.Trouble, 500)
}

// Gone returns the sorted names of workers that have ended since they were heard, and of
// workers that were removed.
func (f *Fleet) Gone() (left, removed []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, p := range f.peers {
		if p.beat.Leaving && !f.removed[name] {
			left = append(left, name)
		}
	}
	slices.Sort(left)
	return left, slices.Sorted(maps.Keys(f.removed))
}

// Refused returns how many messages this caller and, as far as it knows, its workers have
// refused: forged, modified, beyond the credit, or for another recipient.
func (f *Fleet) Refused() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.refused
}

// unlike says why a worker gets no calls of this caller, whatever they are.
func (f *Fleet) unlike(b *fleetv1.Beat) string {
	return link.Unlike(link.Release{Version: b.Version, Protocol: b.Protocol}, link.Release{Version: f.config.Version, Protocol: link.Protocol})
}

// noneTakes says why no worker was asked.
func (f *Fleet) noneTakes(want place.Want) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	why := lacking(want)
	if f.outage != nil {
		why += fmt.Sprintf("; %v: %v", errEngineLost, f.outage.why)
	}
	for _, name := range slices.Sorted(maps.Keys(f.peers)) {
		p := f.peers[name]
		if not := f.whyNot(p); not != "" && want.Fits(p.place(f.life)) {
			why += "; " + name + ": " + not
		}
	}
	return why
}

// waitedInVain says that no slot has become free, and which workers take no such calls if
// none does.
func (f *Fleet) waitedInVain(want place.Want, most time.Duration) string {
	why := fmt.Sprintf("no slot has become free within %s", most)
	f.mu.Lock()
	taken := want.Takes(f.places())
	f.mu.Unlock()
	if !taken {
		why += "; " + f.noneTakes(want)
	}
	return why
}

// whyNot says why a worker that has been heard takes no calls; empty means that it does, or
// that it has ended. The caller holds mu.
func (f *Fleet) whyNot(p *peer) string {
	switch state := p.state(f.life); {
	case f.removed[p.name]:
		return "it was removed from the fleet: give it another key to have it back"
	case p.beat.Leaving:
		return ""
	case state == place.Incompatible:
		return f.unlike(p.beat)
	case state == place.Draining:
		return "it was drained: start it again to have it back"
	case state == place.Suspect && f.shown(p):
		return "it is suspect: toolhost doctor --fleet says why"
	}
	return ""
}

// lacking says which worker would be needed, and how to start it.
func lacking(want place.Want) string {
	if len(want) == 0 {
		return "none that takes calls is there: toolhost doctor --fleet says what to do"
	}
	var flags []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		flag := "--label " + name + "=" + want[name]
		if name == place.NameLabel {
			flag = "--name " + want[name]
		}
		flags = append(flags, flag)
	}
	return fmt.Sprintf("none that takes calls has %s: start one with toolhost worker %s", text.Labels(want), strings.Join(flags, " "))
}

// stateName is the state as people see it. A worker that goes on for other callers has
// drained when it has none of this one's calls. The caller holds mu.
func (f *Fleet) stateName(p *peer) string {
	state := p.state(f.life)
	if state == place.Draining && !p.beat.Draining && slices.Contains(p.beat.Drains, f.life) && !f.has(p.name) {
		return api.WorkerDrained
	}
	return stateNames[state]
}

// has says whether a call is at a worker, or offered to it. The caller holds mu.
func (f *Fleet) has(worker string) bool {
	for _, a := range f.inboxes {
		if a.id.Worker == worker && !a.over.Load() {
			return true
		}
	}
	return false
}

var stateNames = map[place.State]string{
	place.Taking: api.WorkerTaking, place.Draining: api.WorkerDraining, place.Suspect: api.WorkerSuspect, place.Incompatible: api.WorkerIncompatible,
}
