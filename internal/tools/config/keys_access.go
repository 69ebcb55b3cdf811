package config

import (
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/internal/access"
	"github.com/toolhost/toolhost/supervisor"
)

// Access is what the daemon has for some users, or for the token of its name. Its
// Profile has no Group yet: names of groups are for the daemon to look up.
type Access struct {
	access.Profile
	// GroupName is a name or number; empty if there is no group.
	GroupName string
	// Limits bound those of their calls, and Timeouts how long these may take.
	Limits   supervisor.Limits
	Timeouts []budget.Ask
	Source   Source
}

// AccessOf finds one by its name.
func AccessOf(list []Access, name string) (Access, bool) {
	for _, a := range list {
		if a.Name == name {
			return a, true
		}
	}
	return Access{}, false
}

func setsAccess[T any](set func(*Access, T)) effect {
	return to(func(a *Access, s setting) { set(a, s.data.(T)) })
}

var accessKeys = []*key{
	{
		name: "uids", kind: listOf("list of user ids", uidKind), std: "[]", doc: "users of the unix socket that it applies to; they may connect in addition to those of `socket`",
		sets: setsAccess(func(a *Access, ids []string) { a.UIDs = uidsOf(ids) }),
	},
	field(key{name: "group", kind: textKind, std: "(none)", doc: "group whose members it applies to, unless another entry has their uid"},
		func(a *Access) *string { return &a.GroupName }),
	{
		name: "roles", kind: rolesKind, std: "[call]", doc: "what these users may do: `call`, `watch`, `approve`, `admin`, `metrics`; a token has its own",
		sets: setsAccess(func(a *Access, names []string) {
			a.Roles = nil
			for _, name := range names {
				a.Roles = append(a.Roles, access.Role(name))
			}
		}),
	},
	field(key{name: "tools", kind: toolPatternsKind, std: "(all)", doc: "patterns of the tools that they may see and call, such as `[git_*, fs_read]`"},
		func(a *Access) *[]string { return &a.Tools }),
	field(key{name: "ask", kind: toolPatternsKind, std: "[]", doc: "patterns of tools whose every call needs a human's approval"},
		func(a *Access) *[]string { return &a.Ask }),
	field(key{name: "deny", kind: toolPatternsKind, std: "[]", doc: "patterns of tools that they see but may not call"},
		func(a *Access) *[]string { return &a.Deny }),
	{
		name: "maxTimeout", kind: durationKind, std: "(that of the tool)", doc: "the longest timeout that their calls may have",
		sets: setsAccess(func(a *Access, d time.Duration) {
			a.Timeouts = []budget.Ask{{Layer: budget.LayerClient, TimeoutUnset: true, Max: d, Detail: "access." + a.Name}}
		}),
	},
	{name: "limits", keys: accessLimitKeys, doc: "limits of each of their calls, where stricter than the tool's"},
	{name: quotaName, keys: quotaKeys, doc: "what each user and token may have at once"},
}

// accessLimit is a row of limitKeys for what an identity's calls may have.
func accessLimit(name string, field func(*supervisor.Limits) *int64) *key {
	of := find(limitKeys, name)
	return &key{
		name: name, systemd: of.systemd, kind: of.kind, std: "(that of the tool)", doc: of.doc,
		sets: setsAccess(func(a *Access, v int64) { *field(&a.Limits) = v }),
	}
}

var accessLimitKeys = []*key{
	accessLimit("memory", func(l *supervisor.Limits) *int64 { return &l.MemoryBytes }),
	accessLimit("pids", func(l *supervisor.Limits) *int64 { return &l.Pids }),
	accessLimit("cpu", func(l *supervisor.Limits) *int64 { return &l.CPUPercent }),
	accessLimit("output", func(l *supervisor.Limits) *int64 { return &l.OutputBytes }),
	accessLimit("outputTotal", func(l *supervisor.Limits) *int64 { return &l.OutputTotalBytes }),
	accessLimit("openFiles", func(l *supervisor.Limits) *int64 { return &l.OpenFiles }),
	field(key{name: "cpuTime", kind: durationKind, std: "(that of the tool)", doc: find(limitKeys, "cpuTime").doc},
		func(a *Access) *time.Duration { return &a.Limits.CPUTime }),
}

// quotaName begins the paths of quotas in an entry of access.
const quotaName = "quota"

func quota(name string, k *kind, doc string, set func(*access.Quota, int64)) *key {
	return &key{name: name, kind: k, std: "(none)", doc: doc, sets: setsAccess(func(a *Access, v int64) { set(&a.Quota, v) })}
}

var quotaKeys = []*key{
	quota("turns", countKind, "active turns", func(q *access.Quota, v int64) { q.Turns = int(v) }),
	quota("running", countKind, "calls that run", func(q *access.Quota, v int64) { q.Running = int(v) }),
	quota("waiting", countKind, "calls that wait for a slot", func(q *access.Quota, v int64) { q.Waiting = int(v) }),
	quota("streams", countKind, "open streams of events", func(q *access.Quota, v int64) { q.Streams = int(v) }),
	quota("bodies", sizeKind, "request bodies in flight", func(q *access.Quota, v int64) { q.BodyBytes = v }),
	quota("record", sizeKind, "what their turns hold of the journal: the oldest that have ended make room, and no calls begin while those that are active hold as much", func(q *access.Quota, v int64) { q.RecordBytes = v }),
	quota("memory", sizeKind, "memory of the processes of all their calls together", func(q *access.Quota, v int64) { q.MemoryBytes = v }),
	quota("cpu", percentKind, "CPU of the processes of all their calls together, in percent of one", func(q *access.Quota, v int64) { q.CPUPercent = v }),
}

var rolesKind = func() *kind {
	var names []string
	for _, role := range access.AllRoles() {
		names = append(names, string(role))
	}
	return listOf("list of roles", enum(names...))
}()

// toolPatternsKind is a list of patterns of tools' names.
var toolPatternsKind = listOf("list of patterns", &kind{
	name: "pattern of tools", schema: &jsonschema.Schema{Type: "string"},
	read: func(_ *reader, n *node) (any, string) {
		if n.shape != str {
			return nil, "is not text: write it in quotes"
		}
		return n.value, access.CheckPattern(n.value)
	},
})

var accessNames = namesLike("ACCESS", `^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`, "is not a name for an entry of access: write 1 to 64 of A-Z, a-z, 0-9, _ and -, the first one a letter or digit")

// access builds what identities have.
func (b *builder) access() {
	owners := map[uint32]string{}
	for _, g := range b.root.groups["access"] {
		a := Access{Profile: access.Profile{Name: g.name, Roles: []access.Role{access.Call}}, Source: Source{Layer: LayerTool, Position: g.at.at}}
		apply(&a, accessKeys, g.set)
		for _, uid := range a.UIDs {
			if other, twice := owners[uid]; twice {
				b.complain(g.at, "user id %d is in access.%s already: leave it in one entry", uid, other)
			}
			owners[uid] = g.name
		}
		for _, s := range g.set.below("limits") {
			var one Access
			apply(&one, accessLimitKeys, layer{s.path: s})
			b.checkLimit(s, one.Limits)
		}
		b.checkQuota(g)
		b.loaded.Access = append(b.loaded.Access, a)
		b.accessShown(g)
	}
}

// checkQuota refuses what the kernel would not accept, or no call could begin with.
func (b *builder) checkQuota(g *group) {
	for path, s := range g.set.below(quotaName) {
		switch v, _ := s.data.(int64); path {
		case "memory":
			b.checkGroup(s, cgroup.Limits{MemoryBytes: v})
		case "cpu":
			b.checkGroup(s, cgroup.Limits{CPUPercent: v})
		}
	}
}

// accessShown lets changes of what identities have be compared and shown.
func (b *builder) accessShown(g *group) {
	for path, s := range g.set {
		s.path = "access." + g.name + "." + path
		b.loaded.set[s.path] = s
	}
}
