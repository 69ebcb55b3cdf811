package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
	"time"

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/supervisor"
)

// Options of Load. The zero value loads what Machine.Lookup finds on this
// machine.
type Options struct {
	// Path is the file, as --config names it; empty looks for one.
	Path string
	// Machine is where to load; nil is ThisMachine.
	Machine *Machine
	// Flags overrule everything else.
	Flags []Flag
}

// Flag is a setting of the command line: a key that every tool may have, such as
// "memory", or a dotted one of the host, such as "turn.maxCalls". Paths and variables
// are taken as they stand, for a shell has read them; lists add to those of the layers
// below, but grants of the network replace them; and a timeout or grace out of its
// bounds is for calls to be held to them.
type Flag struct {
	Key string
	// Values are those of a flag that may be repeated, or else one.
	Values []string
	// Name is the flag's for messages and sources: "--memory".
	Name string
}

// OfFlags is what flags say by themselves, without any file or variable.
func OfFlags(flags []Flag) (*Loaded, error) {
	m, err := ThisMachine()
	if err != nil {
		return nil, err
	}
	m.Environ = nil
	return Load(Options{Path: os.DevNull, Machine: &m, Flags: flags})
}

// Loaded is a whole configuration. It is never changed after Load.
type Loaded struct {
	// Path is the file's, or empty. Files are all that were read,
	// absolute, Path among them.
	Path  string
	Files []string
	// Hash is the SHA-256 of Files and of what was read from them, in hexadecimal.
	Hash string
	// Sources are what else decides what a Load reads: the folders and the finds of
	// the patterns of includes, and the files that Lookup finds by itself.
	Sources []string
	// Folders are those in which Lookup would find a file that does not exist.
	Folders []string
	// State is the folder of the journal; empty if not set.
	State string
	// Config is the supervisor's: Limits, Totals, Timeouts, Grace, Admission,
	// folders and CgroupParent. The rest is left to the host.
	Config supervisor.Config
	Turn   Turn
	// Journal can be converted to a journal's Retention.
	Journal Retention
	// Daemon is for toolhost serve alone.
	Daemon Daemon
	// Access is for toolhost serve, in the order of the files.
	Access []Access
	// MCP is for toolhost mcp, and for the daemon's MCP server.
	MCP MCP
	// Telemetry is for toolhost serve, and Fleet.
	Telemetry Telemetry
	Fleet     Fleet
	// Default is what holds for a tool that the file does not name. It has no
	// type.
	Default Tool
	// Tools are in the order of the files.
	Tools   []Tool
	Secrets []Secret
	// Warnings are not wrong, but worth to be told.
	Warnings Problems

	set layer
}

// Turn are the settings of turns.
type Turn struct {
	Budget budget.TurnSpec
	// Parallel bounds the calls of one turn that run at once; 0 is package
	// turn's default.
	Parallel int
}

// Retention bounds what the journal keeps: 0 means the journal's default,
// negative means unlimited.
type Retention struct {
	MaxAge   time.Duration
	MaxBytes int64
}

// Load reads the configuration. The error is Problems, all that there are, or
// that the machine is not known. With Problems it returns what could be read; only
// settings that no problem concerns may be used, see Problems.Concern. It may be
// called again at any time; see Diff.
func Load(o Options) (*Loaded, error) {
	m := o.Machine
	if m == nil {
		this, err := ThisMachine()
		if err != nil {
			return nil, err
		}
		m = &this
	}
	b := read(*m, o.Path)
	l := b.loader
	b.environment()
	b.flags(o.Flags)
	b.build()
	b.unknownVariables()
	for _, f := range l.files {
		b.loaded.Files = append(b.loaded.Files, f.path)
	}
	b.loaded.Hash = hex.EncodeToString(l.sum.Sum(nil))
	files, folders := m.Standard()
	b.loaded.Sources, b.loaded.Folders = append(l.sources, files...), folders
	return b.loaded, l.report.err()
}

// read reads the file that is named, or found, with all that it includes.
func read(m Machine, named string) *builder {
	l := &loader{reader: reader{machine: m, report: &report{}, asked: map[string]bool{}}, root: newGroup("", nil, nil), sum: sha256.New()}
	name, path := m.Lookup(named)
	if path != "" {
		l.load(newFile(name, path), nil, nil)
	}
	return &builder{loader: l, loaded: &Loaded{Path: path}}
}

// Problem is a mistake in the setting at path, with its place.
func (l *Loaded) Problem(path string, wrong error) Problem {
	if s := l.set[path]; s.node != nil {
		return s.node.problem(oneLine(wrong.Error()))
	}
	return Problem{Path: path, Message: oneLine(wrong.Error())}
}

// Tool finds one by its name. It is not to be changed.
func (l *Loaded) Tool(name string) (*Tool, bool) {
	for i := range l.Tools { // a copy of each takes longer than all else
		if l.Tools[i].Name == name {
			return &l.Tools[i], true
		}
	}
	return nil, false
}

// Values lists the settings that are not a single tool's, with their sources,
// in the order of the table of keys; built-in ones, too, where they are values.
func (l *Loaded) Values() []Value {
	all := builtIn(rootKeys)
	all.over(l.set)
	return all.values(rootKeys, "")
}

// builtIn are the defaults that are values.
func builtIn(keys []*key) layer {
	l := layer{}
	for _, k := range keys {
		if k.names != nil || k.unset {
			continue
		}
		for _, s := range builtIn(k.keys) {
			s.path = k.name + "." + s.path
			l[s.path] = s
		}
		if k.kind != nil && k.std != "" && !strings.HasPrefix(k.std, "(") {
			l[k.name] = setting{key: k, path: k.name, text: k.std, source: Source{Layer: LayerBuiltIn}}
		}
	}
	return l
}

func (l layer) values(keys []*key, prefix string) []Value {
	list := []Value{}
	for _, s := range l.ordered(keys) {
		list = append(list, s.value(prefix))
	}
	return list
}

func (s setting) value(prefix string) Value {
	v := Value{Path: s.path, Text: s.text, Source: s.source}
	if prefix != "" {
		v.Path = prefix + "." + s.path
	}
	if s.hides() {
		v.Text = hidden
	}
	v.Source.Layer = cmp.Or(v.Source.Layer, LayerBuiltIn)
	return v
}

// hidden stands for a value that is not shown.
const hidden = "(hidden)"

// hides is true of variables that seem to hold a secret.
func (s setting) hides() bool { return s.key.kind == variableKind && SecretName(s.name) }

// SecretName says whether a variable's name speaks of a secret: a part of it
// between underscores ends in one of these words.
func SecretName(name string) bool {
	for _, part := range strings.Split(strings.TrimRight(strings.ToUpper(name), "S0123456789_"), "_") {
		for _, word := range []string{"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "PASS", "CREDENTIAL", "CRED", "AUTH", "COOKIE"} {
			if strings.HasSuffix(part, word) {
				return true
			}
		}
	}
	return false
}
