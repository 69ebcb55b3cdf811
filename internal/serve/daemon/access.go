package daemon

import (
	"fmt"
	"os"

	"github.com/toolhost/toolhost/internal/access"
	"github.com/toolhost/toolhost/internal/tools/config"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// book returns who may use the daemon, by the configuration in force.
func (d *daemon) book() access.Book {
	loaded := d.tools.loaded()
	if known := d.known.Load(); known != nil && known.of == loaded {
		return known.Book
	}
	known := &knownBook{d.bookOf(loaded), loaded}
	d.known.Store(known)
	return known.Book
}

// knownBook is that of a configuration.
type knownBook struct {
	access.Book
	of *config.Loaded
}

func (d *daemon) bookOf(loaded *config.Loaded) access.Book {
	settings := d.options.Loaded.Daemon
	b := access.Book{
		Admins: []uint32{0, uint32(os.Geteuid())}, Guests: settings.SocketUIDs,
		AnyUser: len(settings.SocketUIDs) == 0 && settings.SocketGroup != "",
	}
	if len(loaded.Access) == 0 {
		b.GuestRoles = []access.Role{access.Admin}
	}
	for _, a := range loaded.Access {
		b.Profiles = append(b.Profiles, profileOf(a))
	}
	return b
}

// tellGuests warns of guests that may do everything because the configuration gives nobody a
// role, as it was before there were roles.
func (d *daemon) tellGuests() {
	settings := d.options.Loaded.Daemon
	if len(d.tools.loaded().Access) == 0 && (settings.SocketGroup != "" || len(settings.SocketUIDs) > 0) {
		d.logger.Warn("everybody whom socket lets in may do everything, since there is no access in the configuration: with an entry there, others may make calls of their own and no more")
	}
}

// profileOf looks up the group of a profile, which CheckGroups has found.
func profileOf(a config.Access) access.Profile {
	p := a.Profile
	if a.GroupName == "" {
		return p
	}
	if gid, err := groupID(a.GroupName); err == nil {
		p.Group = new(uint32(gid))
	}
	return p
}

// claim fills in what turns of an identity may use. It is looked up in the configuration in
// force, so that a turn which outlives a reload gets no more than that allows.
func (d *daemon) claim(who access.Identity, spec *turn.Spec) {
	if spec.ParentID != "" {
		return // it has its parent's; calls that begin turns below their own are very many identities
	}
	spec.Most = who.Profile.Quota.Turns
	d.owners.Store(who.Name, who)
	spec.Room = func() error { return d.room(who.Name) }
	spec.View = func(t turn.Tool) (turn.Tool, bool) { return d.view(d.book().Current(who), t) }
}

// room returns an error if the active turns of an owner hold as much of the journal as they
// may: then they can have no more calls.
func (d *daemon) room(owner string) error {
	most := d.recordBytes(owner)
	if most == 0 || d.journal == nil {
		return nil
	}
	if held := d.journal.Held(owner, most); held >= most {
		return fmt.Errorf("the active turns of %s hold %d bytes of the journal, and its quota is %d (access: quota: record)", owner, held, most)
	}
	return nil
}

// recordBytes returns how much of the journal an owner may hold; 0 means unlimited. Only
// owners that have begun a turn here are known.
func (d *daemon) recordBytes(owner string) int64 {
	who, known := d.owners.Load(owner)
	if !known || d.tools == nil {
		return 0
	}
	return d.book().Current(who.(access.Identity)).Profile.Quota.RecordBytes
}

// view returns a tool as an identity may use it: not at all, or no looser than it is.
func (d *daemon) view(who access.Identity, t turn.Tool) (turn.Tool, bool) {
	if !who.MayUse(t.Name) {
		return turn.Tool{}, false
	}
	switch who.Mode(t.Name, string(t.Mode)) {
	case string(turn.ModeDeny):
		t.Mode = turn.ModeDeny
	case string(turn.ModeAsk):
		t.Mode = turn.ModeAsk
	}
	if own, ok := config.AccessOf(d.tools.loaded().Access, who.Profile.Name); ok {
		persistent := t.Request.Sandbox != nil && t.Request.Sandbox.Workspace != ""
		t.Request.Limits = t.Request.Limits.Within(own.Limits, persistent)
		t.Request.Timeouts = append(t.Request.Timeouts[:len(t.Request.Timeouts):len(t.Request.Timeouts)], own.Timeouts...)
	}
	t.Request.Share = d.shareOf(who)
	return t, true
}

// shareOf returns the share of an identity's calls. Who may do everything gains nothing by
// others' kept processes, and shares them where there is nobody to tell from.
func (d *daemon) shareOf(who access.Identity) supervisor.Share {
	q := who.Profile.Quota
	return supervisor.Share{
		Key: who.Name, Running: q.Running, Waiting: q.Waiting, MemoryBytes: q.MemoryBytes, CPUPercent: q.CPUPercent,
		Apart: len(d.tools.loaded().Access) > 0 || !who.IsAdmin(),
	}
}
