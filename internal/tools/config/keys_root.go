package config

import (
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/lazy"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/turn"
)

// rootKeys is the table: the keys of toolhost.yaml, and below them all others.
// It is set by init, since error messages that values give look into it.
var rootKeys []*key

func init() {
	rootKeys = []*key{
		field(key{name: "state", variable: "TOOLHOST_STATE", kind: statePath(), std: "(/var/lib/toolhost as root, else ~/.local/state/toolhost)", restart: true, doc: "folder of the journal and of tools' data"},
			func(l *Loaded) *string { return &l.State }),
		{name: includeKey, kind: includeKind, std: "[]", doc: "more files, or patterns such as `conf.d/*.yaml`; setting a key in two files is an error"},
		{name: "timeouts", names: profileNames, keys: profileKeys, short: "default", doc: "timeout profiles: a tool's calls have `tool_call`, its start `registration`, its description `message_route`; `approval`, `confirm`, `password`, `questionnaire`, `device_code` and `hitl_escalate` are how long toolhost waits for a human; toolhost itself does not use the others"},
		{name: "kill", keys: []*key{graceKey}, doc: "how tools are ended"},
		streamKey,
		{name: "limits", keys: hostLimitKeys, doc: "limits of each call; classes and tools override them, except `network`, the ceiling"},
		{name: "network", keys: networkHostKeys, doc: "settings of the network grants of all calls"},
		{name: "totals", keys: groupKeys, unset: true, restart: true, std: "(none)", doc: "limits of all calls together, by the keys `memory` to `ioMax`"},
		{name: "admission", keys: admissionKeys, restart: true, doc: "how many calls run and wait"},
		{name: "turn", keys: turnKeys, doc: "budgets of a turn"},
		{name: "journal", keys: journalKeys, restart: true, doc: "what the journal keeps"},
		{name: "socket", keys: socketKeys, restart: true, doc: "the daemon's unix socket"},
		field(key{name: "listen", variable: "TOOLHOST_LISTEN", kind: listenKind, std: "(none)", restart: true, doc: "TCP address to listen on as well, for clients with a token; without `tls` on loopback only"},
			func(l *Loaded) *string { return &l.Daemon.Listen }),
		field(key{name: "publicUrl", kind: publicURLKind, std: "(none: this machine only)", restart: true, doc: "URL under which clients reach the daemon, behind a proxy or from elsewhere, such as `https://tools.example.org`"},
			func(l *Loaded) *string { return &l.Daemon.PublicURL }),
		{
			name: "proxies", kind: listOf("list of addresses", proxyKind), std: "[]", restart: true, doc: "addresses or networks of proxies whose `X-Forwarded-For` is trusted; a network as its first address, `10.0.0.0/24` and not `10.0.0.7/24`",
			sets: to(func(l *Loaded, s setting) { l.Daemon.Proxies = prefixesOf(s.data.([]string)) }),
		},
		{name: "tls", keys: tlsKeys, restart: true, doc: "TLS on `listen`; changed files are read again"},
		{name: "access", names: accessNames, keys: accessKeys, groups: true, doc: "rights and quotas of users of the unix socket and of tokens, by name; see admins.md"},
		{name: "stop", keys: stopKeys, doc: "how the daemon ends"},
		{name: "mcp", keys: clientKeys, doc: "the MCP server, see mcp-server.md"},
		{name: "telemetry", keys: telemetryKeys, restart: true, doc: "what the daemon sends to monitoring systems, see telemetry.md"},
		{name: "fleet", keys: fleetKeys, restart: true, doc: "workers on other machines, see fleet.md"},
		{name: "dirs", keys: dirKeys, restart: true, doc: "toolhost's own folders"},
		field(key{name: "cgroupParent", kind: cgroupKind, std: "(found)", restart: true, doc: "the cgroup below which calls are made, the same path in every hierarchy"},
			func(l *Loaded) *string { return &l.Config.CgroupParent }),
		{name: "secrets", names: secretNames, keys: secretKeys, doc: "secrets, by the names that tools use"},
		{name: "classes", names: groupNames, keys: commonKeys, groups: true, doc: "named settings for tools"},
		{name: "tools", names: toolNames, keys: toolKeys, groups: true, doc: "the tools, by the names that models use"},
	}
}

const includeKey = "include"

// namePattern is what every model API takes as the name of a tool.
const namePattern = `^[A-Za-z0-9_-]{1,64}$`

var (
	groupNames  = namesLike("CLASS", namePattern, "is not a name that every model API takes: write 1 to 64 of A-Z, a-z, 0-9, _ and -")
	toolNames   = &names{word: "TOOL", pattern: namePattern, check: WrongTool}
	secretNames = namesLike("SECRET", namePattern, "is not a name for a secret: write 1 to 64 of A-Z, a-z, 0-9, _ and -")
	anyNames    = &names{word: "NAME", check: func(name string) string {
		if name != "" && len(name) <= 256 {
			return ""
		}
		return "is not a name of a tool: write 1 to 256 characters"
	}}
	profileNames  = &names{word: "PROFILE", known: slices.Concat(namesOfProfiles(budget.Profiles()), without(namesOfProfiles(budget.Interactions()), budget.HITLEscalate))}
	questionNames = &names{word: "QUESTION", known: namesOfProfiles(budget.Interactions())}
)

// WrongTool says what keeps a name from being that of a tool; empty is nothing.
func WrongTool(name string) string {
	if name == turn.StatusTool {
		return "is the name of a tool of toolhost's own: choose another"
	}
	return groupNames.check(name)
}

func without(names []string, one string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return name == one })
}

func namesOfProfiles(profiles []budget.Profile) []string {
	var list []string
	for _, p := range profiles {
		list = append(list, p.Name)
	}
	return list
}

// profileKeys are the rows of timeouts under a profile's names for them.
var profileKeys = []*key{
	profileKey("default", "timeout", "(the standard; 30s for tool_call)", "the timeout where nobody asks for one"),
	profileKey("min", "minTimeout", "(the standard; 1s for tool_call)", "the least that may be asked for"),
	profileKey("max", "maxTimeout", "(the standard; 1h for tool_call)", "the most that may be asked for"),
	profileKey("soft", "soft", "10s", "soft budget"),
}

// questionKeys are the same for what is asked of humans about a tool.
var questionKeys = []*key{
	questionDefault("(120s; confirm 60s, roots 10s, hitl_escalate 5m, device_code none)"),
	profileKey("min", "minTimeout", "(none; hitl_escalate 1m)", "the least that may be asked for"),
	profileKey("max", "maxTimeout", "1h", "the most that may be asked for, at most 1h"),
}

func questionDefault(std string) *key {
	k := profileKey("default", "timeout", std, "how long a human is waited for where nobody asks for another time")
	k.kind, k.variable = durationKind, ""
	return k
}

func profileKey(name, of, std, doc string) *key {
	k := *find(timeoutKeys, of)
	k.name, k.systemd, k.variable, k.std, k.doc = name, "", "", std, doc
	if name == "default" { // which may not be lifted here
		k.kind, k.variable = finiteTimeout, profileVariable(profileNames.word)
	}
	return &k
}

// profileVariable sets the default of a profile.
func profileVariable(profile string) string {
	return "TOOLHOST_TIMEOUT_" + strings.ToUpper(profile)
}

var admissionKeys = []*key{
	intField(key{name: "running", kind: countKind, std: "(two per CPU)", doc: "calls that run at once. A free slot goes to the caller with the fewest. Callers with some leave one free for each caller that has none and called in the last 10s, at most a quarter of all; and two beside another's only call in its first 500ms, at most half of all"},
		func(l *Loaded) *int { return &l.Config.Admission.Running }),
	intField(key{name: "queue", kind: countKind, std: "64", doc: "calls that wait for their turn"},
		func(l *Loaded) *int { return &l.Config.Admission.Queue }),
	field(key{name: "wait", kind: durationKind, std: "10s", doc: "the longest that a call waits"},
		func(l *Loaded) *time.Duration { return &l.Config.Admission.Wait }),
	intField(key{name: "prestarted", kind: countKind, std: "(two per CPU, at least 4)", doc: "processes of all tools together that wait for calls (`prestart`); those of the least recently called tools make room"},
		func(l *Loaded) *int { return &l.Config.Prestart.Processes }),
	field(key{name: "prestartedMemory", kind: sizeKind, std: "(512MiB, or a quarter of `totals.memory`)", doc: "memory of these together"},
		func(l *Loaded) *int64 { return &l.Config.Prestart.MemoryBytes }),
	{
		name: "sandboxes", kind: boolKind, std: "true", doc: "make [sandboxes that wait](#sandboxes-that-wait) behind calls, as many as `prestarted` says",
		sets: to(func(l *Loaded, s setting) { l.Config.Prestart.NoSandboxes = !s.data.(bool) }),
	},
}

var turnKeys = []*key{
	intField(key{name: "maxCalls", kind: countKind, std: "50", doc: "calls that a turn may make"},
		func(l *Loaded) *int { return &l.Turn.Budget.MaxCalls }),
	field(key{name: "toolTime", kind: durationKind, std: "(none)", doc: "time in which at least one call runs; what a call waits for once it has begun, such as a slot or a person, comes on top"},
		func(l *Loaded) *time.Duration { return &l.Turn.Budget.ToolTime }),
	field(key{name: "deadline", kind: durationKind, std: "(none)", doc: "limit of the whole turn, not counting waits for people"},
		func(l *Loaded) *time.Duration { return &l.Turn.Budget.Deadline }),
	field(key{name: "reserve", kind: held(scalar("duration", durationPattern, positiveDuration), budget.NoReserve), std: "10s", doc: "end of the deadline that is reserved for the model's last answer; the deadline must be at least a second longer"},
		func(l *Loaded) *time.Duration { return &l.Turn.Budget.Reserve }),
	field(key{name: "streamDuration", kind: durationKind, std: "60s", doc: "how long the model may stream in a turn, all round trips together, not counting tools and humans; for hosts that report when it streams"},
		func(l *Loaded) *time.Duration { return &l.Turn.Budget.StreamDuration }),
	intField(key{name: "parallel", kind: countKind, std: "8", restart: true, doc: "calls of one turn that run at once"},
		func(l *Loaded) *int { return &l.Turn.Parallel }),
}

var journalKeys = []*key{
	{
		name: "maxAge", kind: durationOrInfinite, std: "720h", doc: "how long a turn is kept after its end",
		sets: to(func(l *Loaded, s setting) {
			if l.Journal.MaxAge = s.data.(time.Duration); l.Journal.MaxAge == budget.Infinite {
				l.Journal.MaxAge = -1
			}
		}),
	},
	{
		name: "maxSize", kind: sizeOrInfinity, std: "512MiB", doc: "size of the database; the oldest turns are dropped first, but half of it is theirs, however much the audit records hold",
		sets: to(func(l *Loaded, s setting) {
			if l.Journal.MaxBytes = s.data.(int64); unlimited(s.node.value) {
				l.Journal.MaxBytes = -1
			}
		}),
	},
}

var dirKeys = []*key{
	field(key{name: "spill", kind: pathKind("path", pathFolder), std: "(none: output that is cut is lost)", doc: "for output that results do not keep; the folder must exist"},
		func(l *Loaded) *string { return &l.Config.SpillDir }),
	{
		name: "spillTotal", kind: sizeOrInfinity, std: "4GiB", doc: "size of all files in `dirs.spill`, each counted as 1MiB or more: after a call the oldest are removed; at least 2MiB",
		sets: to(func(l *Loaded, s setting) {
			if l.Config.SpillTotalBytes = s.data.(int64); unlimited(s.node.value) {
				l.Config.SpillTotalBytes = -1
			}
		}),
	},
	field(key{name: "store", kind: pathKind("path", pathAny), std: "(/var/cache/toolhost/store, or in the user's cache)", doc: "for the copies of executables that are run"},
		func(l *Loaded) *string { return &l.Config.StoreDir }),
	field(key{name: "runtime", kind: pathKind("path", pathAny), std: "(/run/toolhost; of a user in $XDG_RUNTIME_DIR, or else in /tmp)", doc: "for sockets; a short path"},
		func(l *Loaded) *string { return &l.Config.RuntimeDir }),
}

var secretKeys = []*key{
	{
		name: "file", kind: pathKind("path", pathFile), doc: "a file with its value; a line break at the end is ignored",
		sets: to(func(t *Secret, s setting) { t.File = s.data.(string) }),
	},
	{
		name: "credential", kind: credentialKind, doc: "a systemd credential (LoadCredential=)",
		sets: to(func(t *Secret, s setting) { t.File = s.data.(string) }),
	},
}

// credentialKind is the name of a file in $CREDENTIALS_DIRECTORY.
var credentialKind = &kind{name: "name of a credential", schema: textSchema(), read: func(r *reader, n *node) (any, string) {
	if n.shape != str || !credentialForm().MatchString(n.value) {
		return nil, "is not a name of a credential: write that of LoadCredential="
	}
	dir, set := r.machine.lookup("CREDENTIALS_DIRECTORY")
	if !set || dir == "" {
		return nil, "is a systemd credential, but $CREDENTIALS_DIRECTORY is not set: run toolhost as a service with LoadCredential=, or use file"
	}
	path := dir + "/" + n.value
	return path, r.missing(path, pathFile)
}}

var credentialForm = lazy.Regexp(`^[A-Za-z0-9_@:.-]{1,255}$`)

// dirKind is a folder of the host, or one that every call has.
var dirKind = &kind{
	name: "path", schema: textSchema(),
	read: func(r *reader, n *node) (any, string) {
		if n.shape == str && n.value == workspaceWord {
			return sandbox.Workspace, ""
		}
		path, wrong := r.path(n) // checkDir looks whether it is there
		return path, wrong
	},
	write: writePath,
}

// prefixKind stands before the names of a server's tools.
var prefixKind = &kind{name: "text", schema: &jsonschema.Schema{Type: "string", Pattern: prefixPattern}, read: func(_ *reader, n *node) (any, string) {
	if n.shape != str || !prefixForm().MatchString(n.value) {
		return nil, "is not a prefix of names: write at most 48 of A-Z, a-z, 0-9, _ and -"
	}
	return n.value, ""
}}

const prefixPattern = `^[A-Za-z0-9_-]{0,48}$`

var prefixForm = lazy.Regexp(prefixPattern)

// includeKind is read by the loader, which looks for the files.
var includeKind = &kind{
	name: "list of paths", schema: listSchema(textSchema()),
	read: func(_ *reader, n *node) (any, string) {
		if n.shape != list || slices.ContainsFunc(n.items, func(i *node) bool { return i.shape != str }) {
			return nil, "is not a list of paths: write [conf.d/*.yaml]"
		}
		return n.items, ""
	},
}
