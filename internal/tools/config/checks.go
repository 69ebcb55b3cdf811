package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

const unlimitedBytes = supervisor.Unlimited

// checkAmounts judges each limit of a layer for itself, at its place.
func (b *builder) checkAmounts(l layer) {
	for _, s := range l {
		if s.node == nil || !isLimit(s) {
			continue
		}
		var t Tool
		apply(&t, toolKeys, layer{s.path: s})
		b.checkLimit(s, t.Limits)
	}
}

func (b *builder) checkLimit(s setting, l supervisor.Limits) {
	if err := l.Validate(); err != nil {
		b.complain(s.node, "%s", limitError(err))
	}
}

// limitError leaves out what is not so in the file: no limit is infinity there.
func limitError(err error) string {
	text, _, _ := strings.Cut(err.Error(), ", or use 0 for no limit")
	return text
}

func isLimit(s setting) bool {
	first, _, _ := strings.Cut(s.path, ".")
	return find(limitKeys, first) != nil
}

func (b *builder) checkTotal(s setting) {
	var l cgroup.Limits
	apply(&l, groupKeys, layer{s.path: s})
	b.checkGroup(s, l)
}

// checkGroup is for what calls have together.
func (b *builder) checkGroup(s setting, l cgroup.Limits) {
	err := l.Validate()
	if err == nil { // what is too little for any one call is so for all of them
		err = supervisor.Limits{MemoryBytes: l.MemoryBytes}.Validate()
	}
	if err != nil {
		b.complain(s.node, "%s", limitError(err))
	}
}

// checkStorage refuses sizes that are together more than half of the memory
// that they count to.
func (b *builder) checkStorage(t Tool) {
	s, ok := firstOf(t.settings, "workspace", "tmp", "memory")
	if !ok || s.node == nil || t.Sandbox.Tier == sandbox.TierNone {
		return
	}
	memory := cmp.Or(t.Limits.MemoryBytes, supervisor.DefaultLimits().MemoryBytes)
	if memory == supervisor.Unlimited {
		memory = 0
	}
	storage := sandbox.Storage{WorkspaceBytes: t.Limits.WorkspaceBytes, TmpBytes: t.Limits.TmpBytes, WorkspaceInodes: t.Limits.WorkspaceInodes}
	if err := storage.Fits(memory, t.Data); err != nil {
		b.complain(s.node, "%v", err)
	}
}

// checkTurn refuses a deadline that is all reserve, by which no turn could make a
// call.
func (b *builder) checkTurn() {
	deadline, ok := b.root.set["turn.deadline"]
	at, own := b.root.set["turn.reserve"]
	if !ok || deadline.source.Layer == LayerFlag || at.source.Layer == LayerFlag { // whose command has another default
		return
	}
	total, kept, by := deadline.data.(time.Duration), budget.DefaultReserve, " (the default)"
	if own {
		kept, by = at.data.(time.Duration), ""
	} else {
		at = deadline
	}
	if total-kept >= budget.MinCall {
		return
	}
	remedy := "write a longer deadline"
	if less := (total / 4).Truncate(10 * time.Millisecond); less > 0 && total-less >= budget.MinCall {
		remedy += ", or a reserve such as " + budget.Format(less)
	}
	b.complain(at.node, "turn.deadline %s less turn.reserve %s%s leaves no call the second that it needs: %s", deadline.text, budget.Format(kept), by, remedy)
}

// firstOf finds the first of some settings that is there.
func firstOf(l layer, paths ...string) (setting, bool) {
	for _, path := range paths {
		if s, ok := l[path]; ok {
			return s, true
		}
	}
	return setting{}, false
}

// checkTool looks for settings that contradict one another.
func (b *builder) checkTool(t *Tool, g *group) {
	b.checkStorage(*t)
	b.checkGrants(t.settings)
	b.checkResolved(t, g.at)
	b.checkClaims(t)
	b.checkTurns(t)
	b.checkTier(t)
	b.checkCeiling(t)
	b.checkData(t)
	b.checkReadsData(t)
	b.checkDir(t)
	b.checkSecrets(t)
	b.checkProgram(t)
}

// checkCeiling warns of a tool whose calls would all be refused for their network. A worker
// has a ceiling of its own.
func (b *builder) checkCeiling(t *Tool) {
	err := b.loaded.Config.Ceiling.Refuses(t.Sandbox)
	if err == nil || b.loaded.OnWorkersOnly(*t) {
		return
	}
	key := "network"
	if t.Sandbox.Tier == sandbox.TierNone { // which has the host's
		key = "tier"
	}
	at := t.at
	if s := t.settings[key]; s.node != nil {
		at = s.node
	}
	b.warn(at, oneLine(err.Error()))
}

// checkGrants wants what a call is granted to be there, unless it is a worker's.
func (b *builder) checkGrants(settings layer) {
	if len(settings.below("where")) > 0 {
		return
	}
	for _, path := range []string{"read", "write"} {
		if s, set := settings[path]; set && s.source.Layer != LayerFlag {
			for _, n := range s.node.items {
				b.isThere(n, pathSome)
			}
		}
	}
}

// isThere says whether a path is, and complains if not.
func (b *builder) isThere(n *node, must int) bool {
	path, wrong := b.path(n)
	if n.value == workspaceWord || wrong != "" || sandbox.OwnFolder(path) {
		return true
	}
	if wrong = b.missing(path, must); wrong != "" {
		b.refuse(n, wrong)
	}
	return wrong == ""
}

// checkDir wants the working directory to be a folder, unless it is a worker's, and one
// that the call will see, in or around what it is granted, as the supervisor does.
func (b *builder) checkDir(t *Tool) {
	s, ok := t.settings["dir"]
	if !ok || len(t.Where) == 0 && !b.isThere(s.node, pathFolder) || t.Sandbox.Tier == sandbox.TierNone || sandbox.OwnFolder(t.Dir) {
		return
	}
	for _, granted := range slices.Concat(t.Sandbox.Read, t.Sandbox.Write) {
		if sandbox.Within(t.Dir, granted) || sandbox.Within(granted, t.Dir) {
			return
		}
	}
	b.complain(s.node, "dir %s is not granted: name it in read or write, too", s.text)
}

// checkData refuses limits of a workspace that has none.
func (b *builder) checkData(t *Tool) {
	for _, path := range []string{"workspace", "workspaceInodes"} {
		if s, ok := t.settings[path]; ok && t.Data && s.source.Layer != LayerFile {
			b.complain(s.node, "%s limits nothing with data, whose folder is on disk: take one of them out", path)
		}
	}
}

// checkReadsData refuses to keep what is never changed. Of a server's tools some
// may only read what others keep.
func (b *builder) checkReadsData(t *Tool) {
	if t.Data && t.ReadOnly {
		b.complain(t.settings["data"].node, "data and readOnly contradict one another, for what changes nothing has nothing to keep: take one of them out; of an MCP server, confirm readOnly in tools for those of its tools that only read")
	}
}

func (b *builder) checkClaims(t *Tool) {
	if !t.ReadOnly {
		return
	}
	s := t.settings["readOnly"]
	switch {
	case t.Destructive != nil && *t.Destructive:
		b.complain(s.node, "readOnly and destructive contradict one another: take one of them out")
	case len(t.Sandbox.Write) > 0:
		b.complain(s.node, "readOnly and write %s contradict one another: take one of them out", t.settings["write"].text)
	}
}

// checkTurns refuses turns of one call for a process that serves many.
func (b *builder) checkTurns(t *Tool) {
	if t.ChildTurns && t.MCP.Keep != nil {
		b.complain(t.settings["turns"].node, "turns: %s is for a process of one call, and keep keeps one for many: take one of them out", turnsChild)
	}
}

// needSandbox are keys that mean nothing without one.
var needSandbox = []string{"read", "write", "network", "strict", "require", "allow", "data", "openFiles", "workspace", "workspaceInodes", "tmp"}

// NeedsSandbox says whether a key of a tool, such as "tmp", means nothing with
// tier none.
func NeedsSandbox(key string) bool { return slices.Contains(needSandbox, key) }

func (b *builder) checkTier(t *Tool) {
	if t.Sandbox.Tier != sandbox.TierNone {
		return
	}
	for _, path := range needSandbox {
		if s, ok := t.settings[path]; ok && (s.source.Layer == LayerClass || s.source.Layer == LayerTool) {
			b.complain(s.node, "%s means nothing with tier none, which has no sandbox: take one of them out", path)
		}
	}
}

func (b *builder) checkSecrets(t *Tool) {
	for i := range t.Secrets {
		use := t.Secrets[i]
		s, ok := firstOf(t.settings, "secrets."+use.Variable+".secret", "secrets."+use.Variable+".as")
		if !ok {
			continue
		}
		_, twice := t.settings["env."+use.Variable]
		switch {
		case use.Secret == "":
			b.complain(s.node, "the variable %s is given no secret: write {secret: NAME}", use.Variable)
		case !slices.ContainsFunc(b.loaded.Secrets, func(known Secret) bool { return known.Name == use.Secret }):
			b.complain(s.node, "unknown secret %s: %s", quoted(use.Secret), b.knownSecrets(use.Secret))
		case twice:
			b.complain(s.node, "the variable %s is set by env and by secrets: take one of them out", use.Variable)
		}
	}
}

func (b *builder) knownSecrets(name string) string {
	var known []string
	for _, s := range b.loaded.Secrets {
		known = append(known, s.Name)
	}
	if len(known) == 0 {
		return "there are no secrets: write it in secrets of the file"
	}
	return suggestion(name, known)
}

// checkServerTool looks at what an entry says of one tool of its server.
func (b *builder) checkServerTool(one, server *Tool, g *group) {
	for _, s := range g.set.ordered(serverToolKeys) {
		first, _, _ := strings.Cut(s.path, ".")
		if k := find(serverToolKeys, first); server.MCP.Keep != nil && k.process {
			b.complain(s.node, "%s belongs to the process, which is kept for all tools of the server: set it for the server, or take keep out", first)
		}
	}
	_, ownWrite := g.set["write"]
	if one.ReadOnly && !server.ReadOnly && !ownWrite && server.MCP.Keep == nil {
		// What only reads gets no more than that.
		one.Sandbox.Read = append(one.Sandbox.Read, one.Sandbox.Write...)
		one.Sandbox.Write = nil
	}
	if server.MCP.Keep == nil || one.settings["readOnly"].source == server.settings["readOnly"].source {
		b.checkClaims(one)
	}
	b.checkStorage(*one)
	b.checkGrants(one.settings)
	b.checkResolved(one, g.at)
	b.checkTier(one)
	b.checkCeiling(one)
	b.checkData(one)
	b.checkDir(one)
	b.checkSecrets(one)
}

// secrets builds those of the file.
func (b *builder) secrets() {
	for _, n := range b.root.named["secrets"] {
		own := b.root.set.below("secrets." + n.value)
		s := Secret{Name: n.value, Source: Source{Layer: LayerFile, Position: n.at}}
		apply(&s, secretKeys, own)
		switch _, file := own["file"]; {
		case len(own) > 1:
			b.complain(n, "secret %s has a file and a credential: leave only one of them", quoted(n.value))
		case len(own) == 0 && !b.failedBelow(n):
			b.complain(n, "secret %s has no source: give file or credential", quoted(n.value))
		case file:
			b.checkSecretFile(s, own["file"].node)
		}
		b.loaded.Secrets = append(b.loaded.Secrets, s)
	}
}

// failed reports whether a problem was found in one of these settings.
func (b *builder) failed(paths ...string) bool {
	return slices.ContainsFunc(b.report.list, func(p Problem) bool { return slices.Contains(paths, p.Path) })
}

// failedBelow reports whether a problem was found in the lines below a name.
func (b *builder) failedBelow(n *node) bool {
	return slices.ContainsFunc(b.report.list, func(p Problem) bool { return strings.HasPrefix(p.Path, n.path+".") })
}

// checkSecretFile refuses a secret that no call could have, and warns of one that others can
// read.
func (b *builder) checkSecretFile(s Secret, n *node) {
	info, err := b.machine.stat(s.File)
	if err != nil {
		return
	}
	if info.Mode().IsRegular() && info.Size() > maxSecretFile {
		b.complain(n, "the secret's file has %d bytes, and a secret may have %d: name a shorter one", info.Size(), supervisor.MaxSecretBytes)
	}
	if info.Mode().Perm()&0o004 != 0 {
		b.warn(n, fmt.Sprintf("every user can read the secret's file (mode %#o): chmod o-r %s", info.Mode().Perm(), s.File))
	}
}
