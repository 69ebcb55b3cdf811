package mcpclients

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/toolhost/toolhost/internal/lazy"
	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/internal/text"
	"github.com/toolhost/toolhost/internal/tools/config"
)

// Import turns the JSON in which some program keeps its MCP servers ({"mcpServers":
// {...}}, VS Code's {"servers": {...}}, or Zed's {"context_servers": {...}}) into a
// toolhost.yaml. What cannot be taken over, or has to be seen to, is in the warnings, and
// in comments of the file. No value of a variable is copied, and no argument that looks
// like a credential: its place takes a variable of toolhost's environment, without which
// the file does not load. Nothing is granted to a server; its paths have to be. Comments
// and commas behind a last item are taken.
func Import(text []byte) (yaml []byte, warnings []string, err error) {
	return imported(anyServers(text))
}

// Import is the function of this name for a file of the client's, which says where its
// servers stand.
func (c Client) Import(text []byte) (yaml []byte, warnings []string, err error) {
	return imported(c.servers(text))
}

func imported(f found, err error) ([]byte, []string, error) {
	if err != nil {
		return nil, nil, err
	}
	servers, err := f.read()
	if err != nil {
		return nil, nil, err
	}
	i := importer{names: map[string]bool{}, placeholders: map[string]bool{}, having: havingSecrets(servers)}
	for secret := range i.having {
		i.placeholders[strings.ToUpper(secret)] = true
	}
	i.projects(f.projects)
	i.printf("# Imported. Grant what a server needs: read, write, network, and data to keep its workspace.\n# Each call has a process of its own, and what a server keeps in memory is gone\n# after it: set keep: true for one that must remember.\ntools:")
	for _, name := range sortedKeys(servers) {
		i.server(name, servers[name])
	}
	if len(i.names) == 0 {
		i.printf("\n  {}") // on a line of its own: a comment may be above
	}
	i.printf("\n")
	if len(i.stubs) > 0 {
		i.printf("\n# secrets:\n")
	}
	slices.Sort(i.stubs)
	for _, name := range slices.Compact(i.stubs) {
		i.printf("#   %s: {file: ~/.config/toolhost/secrets/%s}\n", name, name)
	}
	return i.out.Bytes(), i.warnings, nil
}

type importer struct {
	out      bytes.Buffer
	names    map[string]bool
	warnings []string
	// placeholders are the variables that stand for what was not copied, and all of
	// having, which none of those may be.
	placeholders map[string]bool
	// secrets are the variables of one server that were not copied.
	secrets []string
	stubs   []string
	// having is how many servers have a variable of the name, in lower case: their
	// secrets may be different ones.
	having map[string]int
}

// havingSecrets counts the servers that are taken over, by the secrets that they have.
func havingSecrets(servers map[string]server) map[string]int {
	having := map[string]int{}
	for _, s := range servers {
		if leftOut(s) != "" {
			continue
		}
		own := map[string]bool{}
		for _, variable := range s.Env {
			if config.WrongVariable(variable) == "" && config.SecretName(variable) {
				own[strings.ToLower(variable)] = true
			}
		}
		for secret := range own {
			having[secret]++
		}
	}
	return having
}

func (i *importer) printf(format string, args ...any) { fmt.Fprintf(&i.out, format, args...) }

// Bounds of a warning, and of what it quotes.
const (
	maxWarningRunes = 500
	maxQuotedRunes  = 60
)

func quoted(s string) string { return strconv.Quote(text.Cut(s, maxQuotedRunes)) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func (i *importer) warnf(format string, args ...any) {
	i.warnings = append(i.warnings, text.Cut(fmt.Sprintf(format, args...), maxWarningRunes))
}

// projects warns of the servers of projects, whose names may be the same.
func (i *importer) projects(names map[string][]string) {
	for _, folder := range sortedKeys(names) {
		var list []string
		for _, name := range names[folder] {
			list = append(list, quoted(name))
		}
		i.warnf("project %s has servers that are not taken: %s: to import them, copy its mcpServers into a file {\"mcpServers\": {...}} and import that", quoted(folder), strings.Join(list, ", "))
	}
}

func (i *importer) server(name string, s server) {
	i.repeated(name, s)
	if what := leftOut(s); what != "" {
		i.warnf("server %s is left out: %s", quoted(name), what)
		i.printf("\n  # %s is left out: %s", terminal.OneLine(text.Cut(name, maxQuotedRunes)), what)
		return
	}
	i.printf("\n  %s:\n    mcp: %s", text.YAMLKey(i.name(name)), text.YAMLList(i.argv(name, s)))
	i.secrets = nil
	i.environment(name, s.Env)
	i.stub(name)
	i.dir(name, s.Cwd)
	if s.EnvFile != "" {
		i.warnf("server %s: its envFile %s is not read: give its variables by env and secrets", quoted(name), quoted(s.EnvFile))
	}
	i.unused(name, s.Unused)
	if what := config.Unfit(append([]string{s.Command}, s.Args...)); what != "" {
		i.warnf("server %s: %s", quoted(name), what)
	}
}

// repeated warns of what was lost by standing twice.
func (i *importer) repeated(name string, s server) {
	if s.Doubled {
		i.warnf("server %s stands twice: only the last one is taken, rename one of them", quoted(name))
	}
	for _, key := range s.Twice {
		i.warnf("server %s: its key %s stands twice: only the last one is taken", quoted(name), quoted(key))
	}
}

// notTakenOver says what is to be done about keys that other programs have.
var notTakenOver = map[string]string{
	"timeout":     "programs differ in its unit: set timeout",
	"autoApprove": "set mode: ask, and mode: allow for those of its tools below tools",
	"alwaysAllow": "set mode: ask, and mode: allow for those of its tools below tools",
	"headers":     "they are for servers over HTTP",
}

func (i *importer) unused(name string, keys []string) {
	for _, key := range keys {
		i.warnf("server %s: its key %s is not taken over: %s", quoted(name), quoted(key), cmp.Or(notTakenOver[key], "toolhost has none of the name"))
	}
}

// leftOut says why a server cannot be taken over.
func leftOut(s server) string {
	switch {
	case s.Wrong != "":
		return s.Wrong
	case s.Disabled:
		return "it is disabled"
	case s.Command == "" && s.URL != "":
		return "servers over HTTP are not supported"
	case s.Command == "":
		return "it has no command"
	case filepath.Base(s.Command) == "toolhost" && slices.Contains(s.Args, "mcp"):
		return "it is toolhost itself"
	case strings.ContainsRune(s.Command+strings.Join(s.Args, "")+s.Cwd, 0):
		return "its command holds a NUL character"
	}
	return ""
}

// stub writes, as comments, how the secrets of a server are to be given: they
// would not load before their files are there.
func (i *importer) stub(server string) {
	if len(i.secrets) == 0 {
		return
	}
	i.printf("\n    # In place of the variables above that are null:\n    # secrets:")
	for _, name := range i.secrets {
		secret := strings.ToLower(name)
		if i.having[secret] > 1 {
			secret = strings.ToLower(i.placeholder(server, name))
			i.warnf("server %s: other servers have the variable %s, too: until each has its own secret, all are passed the same one", quoted(server), name)
		}
		i.printf("\n    #   %s: {secret: %s}", name, secret)
		i.stubs = append(i.stubs, secret)
	}
}

var notInNames = lazy.Regexp(`[^A-Za-z0-9_-]+`)

// name makes one that models take, and that no other has.
func (i *importer) name(name string) string {
	fit := strings.Trim(notInNames().ReplaceAllString(name, "-"), "-")
	fit = cmp.Or(fit[:min(len(fit), 40)], "server")
	unique := fit
	for n := 2; i.names[unique] || config.WrongTool(unique) != ""; n++ {
		unique = fmt.Sprintf("%s-%d", fit, n)
	}
	i.names[unique] = true
	if unique != name {
		i.warnf("server %s is called %s, which models can", quoted(name), unique)
	}
	return unique
}

// argv keeps every character of the words except credentials; it expands
// nothing.
func (i *importer) argv(name string, s server) []string {
	var argv []string
	before := ""
	for n, word := range append([]string{s.Command}, s.Args...) {
		word = strings.ToValidUTF8(word, "\uFFFD")
		shown, ok := i.redacted(name, n, before, word)
		if !ok {
			shown = strings.ReplaceAll(word, "$", "$$")
			if strings.Contains(word, "${") {
				i.warnf("server %s: %s looks like a variable of another program; it is taken as it is", quoted(name), quoted(word))
			}
		}
		argv, before = append(argv, shown), word
	}
	if strings.HasPrefix(s.Command, ".") && s.Cwd != "" {
		i.warnf("server %s: its command %s was found from %s, and is now looked for beside the file", quoted(name), quoted(s.Command), quoted(s.Cwd))
	}
	return argv
}

// environment names the variables. Those that seem to be secrets are passed on
// from toolhost's own environment until they are given as secrets; the others
// wait for somebody to write their values.
func (i *importer) environment(name string, env []string) {
	begun := false
	for _, variable := range env {
		if wrong := config.WrongVariable(variable); wrong != "" {
			i.warnf("server %s: the variable %s is left out: it %s", quoted(name), quoted(variable), wrong)
			continue
		}
		if !begun {
			i.printf("\n    env:")
		}
		begun = true
		if !config.SecretName(variable) {
			i.printf("\n      # TODO %s: \"\"", variable)
			i.warnf("server %s: the value of %s is not copied: write it where the file says TODO, or give it by secrets", quoted(name), variable)
			continue
		}
		i.printf("\n      %s: null", text.YAMLKey(variable))
		i.secrets = append(i.secrets, variable)
		i.warnf("server %s: %s seems to be a secret and is not copied: put it into a file and use the stubs for secrets; until then it is passed on from toolhost's own environment", quoted(name), variable)
	}
}

func (i *importer) dir(name, cwd string) {
	if cwd == "" {
		return
	}
	i.printf("\n    # dir: %s  # grant it with read or write, too", text.YAML(strings.ReplaceAll(strings.ToValidUTF8(cwd, "\uFFFD"), "$", "$$")))
	i.warnf("server %s: it ran in %s; set dir to that, and grant it with read or write", quoted(name), quoted(cwd))
}
