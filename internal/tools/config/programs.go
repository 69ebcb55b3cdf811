package config

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sandbox"
)

// checkProgram warns of a command or server that cannot be started here as things
// are now, and of variables that would be missing.
func (b *builder) checkProgram(t *Tool) {
	s, argv := t.program()
	if s.node != nil && len(argv) > 0 {
		lacks, missing := b.machine.lacks(argv[0])
		if lacks != "" && !b.isWorkers(t) {
			b.warn(s.node, lacks)
		}
		if needs := t.Downloads(); needs != "" {
			b.warn(s.node, needs)
		}
		switch {
		case t.Type != TypeMCP || t.MCP.Keep != nil || missing:
		case path.Base(argv[0]) == "toolhost":
			b.warn(s.node, "each call has a process of its own, and another toolhost forgets with it what it has asked: approvals and answers never reach its calls: say keep: true")
		case t.forgets():
			b.forgetful = append(b.forgetful, t.Name)
			b.firstForgetful = cmp.Or(b.firstForgetful, s.node)
		}
	}
	for _, name := range sortedKeys(t.settings.below("env")) {
		v, ok := t.settings["env."+name].data.(variable)
		if ok && v.passed && !v.set {
			b.warn(t.settings["env."+name].node, fmt.Sprintf("the variable %s has no value, and toolhost's environment has none to pass on: give it one, set it there, or take it out", name))
		}
	}
}

// warnForgetful warns of the servers whose state nobody has decided about, once for all: of
// many they are the most, and would hide the other warnings.
func (b *builder) warnForgetful() {
	if len(b.forgetful) == 0 {
		return
	}
	message := forgetful + ": say keep: true for a server that must remember, or keep: false"
	if more := b.forgetful[1:]; len(more) > 0 {
		message += "; so it is with " + strings.Join(more, ", ")
	}
	b.warn(b.firstForgetful, message)
}

// isWorkers says whether workers alone must have a tool's command. Servers are asked
// here what tools they have.
func (b *builder) isWorkers(t *Tool) bool {
	return t.Type == TypeCommand && b.loaded.OnWorkersOnly(*t)
}

// program is the setting that names the command or server, and its words.
func (t *Tool) program() (setting, []string) {
	switch t.Type {
	case TypeMCP:
		return t.settings["mcp"], t.MCP.Argv
	case TypeCommand:
		if !t.Command.Shell {
			return t.settings["command"], []string{t.Command.Program()}
		}
	}
	return setting{}, nil // a plugin is a path
}

// forgetful is what becomes of a server's state in memory.
const forgetful = "each call has a process of its own, and what the server keeps in memory is gone after it, whatever its result says"

// forgets says that nobody has decided whether a server keeps its state.
func (t *Tool) forgets() bool {
	_, said := t.settings["keep"]
	return !said && t.MCP.Keep == nil && !t.Data
}

// Offline says that calls reach no network.
func (t *Tool) Offline() bool {
	return t.Sandbox.Tier != sandbox.TierNone && t.Sandbox.Network != sandbox.NetworkHost && len(t.Sandbox.Grants) == 0
}

// lacks says whether this machine has no such program, and what to do about it. A
// name without a slash is looked for as the host does it; a path that leads nowhere
// is warned of where it is read.
func (m Machine) lacks(program string) (remedy string, missing bool) {
	if strings.Contains(program, "/") {
		_, err := m.stat(m.absolute(program))
		return "", err != nil
	}
	own, _ := m.lookup("PATH")
	for _, dir := range append(strings.Split(sandbox.Path, ":"), strings.Split(own, ":")...) {
		if info, err := m.stat(path.Join(m.absolute(dir), program)); err == nil && runs(info) {
			return "", false
		}
	}
	return fmt.Sprintf("there is no command %s in PATH: install it, or name its path", quoted(program)), true
}

func runs(info fs.FileInfo) bool { return info.Mode().IsRegular() && info.Mode()&0o111 != 0 }

// downloaders fetch the program that they run, and containers start theirs
// outside of the sandbox.
var (
	downloaders = []string{"npx", "bunx", "pnpx", "pnpm", "yarn", "npm", "uvx", "uv", "pipx"}
	containers  = []string{"docker", "podman", "nerdctl"}
)

// runner finds a downloader or a container program that a command line runs,
// by itself or behind cmd and env.
func runner(argv []string) (program string, list []string) {
	for n, word := range argv {
		program = strings.TrimSuffix(strings.TrimSuffix(path.Base(strings.ReplaceAll(word, `\`, "/")), ".exe"), ".cmd")
		for _, list := range [][]string{downloaders, containers} {
			if slices.Contains(list, program) {
				return program, list
			}
		}
		if n == 0 && program != "cmd" && program != "env" || n > 1 {
			break
		}
	}
	return "", nil
}

// fetches says that a command line downloads the program that it runs.
func fetches(argv []string) (program string, ok bool) {
	program, list := runner(argv)
	return program, len(list) > 0 && &list[0] == &downloaders[0]
}

// Downloads is what to do about a server that its command would download, where
// calls reach no network; empty for others.
func (t Tool) Downloads() string {
	if program, ok := fetches(t.MCP.Argv); ok && t.Type == TypeMCP && t.Offline() {
		return needsNetwork(program)
	}
	return ""
}

// Unfit is what to do about a server whose command line cannot work in a sandbox without
// network; empty for others.
func Unfit(argv []string) string {
	program, ok := fetches(argv)
	switch {
	case ok:
		return needsNetwork(program)
	case program != "":
		return program + " starts a container by a service that the sandbox does not show: install the server, name its program in mcp, and grant its folder with read (docs/mcp-tools.md)"
	}
	return ""
}

func needsNetwork(program string) string {
	return program + " downloads what it runs, and the sandbox has no network: install the server, name its program in mcp, and grant its folder with read (docs/mcp-tools.md)"
}
