// Package archtest checks the shape of this module: which package may import which, that each says what it is for, and
// that no file outgrows its one idea. Check holds the rules and is pure; its test applies it to the tree.
package archtest

import (
	"fmt"
	"slices"
	"strings"
)

// maxLines bounds every file that is written by hand.
const maxLines = 400

// Package is what the rules know of a package.
type Package struct {
	Path  string // from the module's root: "sandbox/export"; "." for the root itself
	Files []File
}

// File is one Go file, whatever its build constraints.
type File struct {
	Name      string
	Test      bool
	Generated bool
	Doc       bool // has a package doc comment
	Lines     int
	Imports   []string // as written
}

// ranks orders the rooms. A package imports only from rooms of a lower rank, and from its own.
var ranks = map[string]int{
	"api":     0,
	"network": 1,
	"budget":  2, "cgroup": 2, "plugin": 2, "sandbox": 2,
	hostSide:     3,
	"supervisor": 4,
	"turn":       5,
	"fleet":      5,
	"client":     6,
	"internal":   7,
	"cmd":        8,
	"bench":      8,
	"examples":   8,
}

const (
	testenv  = "internal/testenv"
	archtest = "internal/archtest"
	sysCalls = "golang.org/x/sys"

	// hostSide is the host's side of the contract that plugin has the author's of.
	hostSide = "internal/plugin/host"

	natsServer = "github.com/nats-io/nats-server/v2"
	natsEngine = "fleet/engine"
	fleetTests = "fleet/fleettest"
	fleetOps   = "internal/fleetops"
)

// inner orders the rooms below supervisor. Each imports only from those of a lower
// rank; call knows processes by an interface, so kept is not below it.
var inner = map[string]int{
	"supervisor/internal/admission": 0, "supervisor/internal/capture": 0, "supervisor/internal/pace": 0, "supervisor/internal/publish": 0,
	"supervisor/internal/redact": 0, "supervisor/internal/store": 0, "supervisor/internal/tasks": 0,
	"supervisor/internal/outcome": 1, "supervisor/internal/mask": 1,
	"supervisor/internal/describe": 2, "supervisor/internal/filelock": 2,
	"supervisor/spec":             3,
	"supervisor/internal/prepare": 4,
	"supervisor/internal/process": 5,
	"supervisor/internal/kept":    6, "supervisor/internal/call": 6, "supervisor/internal/egress": 6,
	"supervisor": 7,
}

// wings orders the rooms below internal: cli and serve do not know each other, and none knows fleetops.
var wings = map[string]int{
	"internal/access": 0, "internal/atomicfile": 0, "internal/fifo": 0, "internal/journal": 0, "internal/lazy": 0, "internal/nowait": 0, "internal/prefault": 0, "internal/cpus": 0, "internal/seqpacket": 0, "internal/shield": 0, "internal/stack": 0, "internal/strictjson": 0, "internal/terminal": 0, "internal/text": 0,
	"internal/tools": 1,
	"internal/cli":   2, "internal/conformance": 2, "internal/serve": 2, "internal/siege": 2,
	fleetOps: 3,
}

// ground is what every room may import.
var ground = []string{
	"internal/atomicfile", "internal/fifo", "internal/lazy", "internal/nowait", "internal/plugin/handshake", "internal/plugin/rpc", "internal/prefault", "internal/cpus", "internal/seqpacket", "internal/signals", "internal/stack", "internal/text",
}

// mayCallKernel are the only packages that may import golang.org/x/sys outside of tests.
var mayCallKernel = []string{"cgroup", "network/relay", "sandbox", hostSide, "internal/shield", "internal/signals", testenv}

// forTests are libraries that check what the module does, and are no part of it.
var forTests = []string{"github.com/anishathalye/porcupine", "github.com/getkin/kin-openapi", "github.com/santhosh-tekuri/jsonschema", "go.uber.org/goleak"}

// Check returns every violation of the rules by the packages of a module, sorted.
func Check(module string, packages []Package) []string {
	var violations []string
	for _, p := range packages {
		complain := func(format string, args ...any) {
			violations = append(violations, p.Path+": "+fmt.Sprintf(format, args...))
		}
		if _, known := ranks[room(p.Path)]; !known {
			complain("no room of the module has this name: give it a rank in %s", archtest)
		}
		if !documented(p.Files) {
			complain("no package doc comment")
		}
		for _, f := range p.Files {
			if f.Lines > maxLines && !f.Generated {
				complain("%s has %d lines, over %d", f.Name, f.Lines, maxLines)
			}
			for _, imported := range f.Imports {
				if reason := forbidden(module, p.Path, imported, f.Test); reason != "" {
					complain("%s imports %s: %s", f.Name, imported, reason)
				}
			}
		}
	}
	slices.Sort(violations)
	return slices.Compact(violations)
}

// documented says whether a package has a doc comment where readers find it: a test file's counts only among test files.
func documented(files []File) bool {
	onlyTests := !slices.ContainsFunc(files, func(f File) bool { return !f.Test })
	return slices.ContainsFunc(files, func(f File) bool { return f.Doc && f.Test == onlyTests })
}

// forbidden says why the package at path must not import imported, or "" where it may.
func forbidden(module, path, imported string, test bool) string {
	if within(imported, sysCalls) {
		if !test && !slices.ContainsFunc(mayCallKernel, func(room string) bool { return within(path, room) }) {
			return "only " + strings.Join(mayCallKernel, ", ") + " speak to the kernel"
		}
		return ""
	}
	if strings.HasPrefix(imported, "github.com/nats-io/") && !mayUse(path, imported, test) {
		return "only " + natsEngine + " has the server in itself, and only fleet speaks with one"
	}
	if !test && !within(path, testenv) && slices.ContainsFunc(forTests, func(library string) bool { return within(imported, library) }) {
		return "the library is for tests only"
	}
	ours, ok := strings.CutPrefix(imported, module+"/")
	if wired := room(path) == "api" || room(path) == "client" && ours != "api"; wired && !test && !standard(imported) {
		return "api needs the standard library only, and client nothing but api beside it"
	}
	if ok {
		return forbiddenOurs(path, ours, test)
	}
	linked := (room(path) == "plugin" || path == "internal/plugin/rpc") && !test
	if linked && within(imported, "github.com/hashicorp") || !test && within(imported, "github.com/hashicorp/go-plugin") {
		return "tools and the host start faster without go-plugin's packages"
	} else if linked && within(imported, "google.golang.org/grpc") && imported != "google.golang.org/grpc/codes" && !slices.Contains(ofGRPC, path) {
		return "a tool starts faster without grpc-go"
	}
	return ""
}

// ofGRPC are the packages beside the SDK that are for grpc-go, or for tests of tools.
var ofGRPC = []string{"plugin/proto/v1/toolgrpc", "plugin/plugintest"}

// mayUse says whether a package may import one of NATS. Tests of fleet play servers.
func mayUse(path, imported string, test bool) bool {
	if within(imported, natsServer) && !test {
		return path == natsEngine || path == fleetTests
	}
	return within(path, "fleet")
}

// forbiddenOurs judges an import inside the module.
func forbiddenOurs(path, imported string, test bool) string {
	from, to := room(path), room(imported)
	switch {
	case slices.Contains(ground, imported):
		return ""
	case slices.Contains(ground, path):
		return "it is below all others"
	case leaf(path) || leaf(imported):
		return forbiddenLeaf(path, imported, test)
	case imported == fleetTests && !test:
		return "it is for tests only"
	case from == "examples":
		// A test may look at what a tool sends.
		sent := test && imported == "plugin/proto/v1"
		if imported != "api" && imported != "budget" && imported != "plugin" && imported != "supervisor" && !within(imported, "turn") && !sent {
			return "an example shows api, budget, plugin, supervisor and turn, as a user has them"
		}
	case to == "cmd" || to == "bench" || to == "examples":
		if from != to {
			return "nothing imports " + to
		}
	case from == to:
		if from == "plugin" && imported == ofGRPC[0] && !slices.Contains(ofGRPC, path) && !test {
			return "a tool starts faster without grpc-go"
		}
		if from == "supervisor" && !test {
			return forbiddenInner(path, imported)
		}
		if from == "internal" && wing(path) != wing(imported) && !test {
			return forbiddenWing(path, imported)
		}
	case to == "fleet" && test && (path == "supervisor" || path == "turn"):
		return "" // their suites run over fleets as well
	case ranks[to] >= ranks[from]:
		return "imports point down only"
	case from == hostSide && to != "plugin":
		return "it knows the contract alone"
	case to == "fleet" && from == "internal" && path != fleetOps:
		return "a build without fleets has only cmd and " + fleetOps + " to leave out"
	}
	return ""
}

// forbiddenInner judges an import between the rooms of supervisor.
func forbiddenInner(path, imported string) string {
	own, known := inner[path]
	below, also := inner[imported]
	switch {
	case !known || !also:
		return "give both rooms of supervisor a rank in " + archtest
	case below >= own:
		return "imports point down only, in supervisor, too"
	}
	return ""
}

// forbiddenWing judges an import between two rooms of internal.
func forbiddenWing(path, imported string) string {
	own, known := wings[wing(path)]
	below, also := wings[wing(imported)]
	switch {
	case !known || !also:
		return "give both rooms of internal a rank in " + archtest
	case below >= own:
		return "imports point down only, in internal, too"
	}
	return ""
}

// forbiddenLeaf judges imports from and of the packages that exist for tests alone.
func forbiddenLeaf(path, imported string, test bool) string {
	switch {
	case within(path, testenv) && within(imported, testenv):
		return ""
	case leaf(path):
		return "a package for tests stands apart from what it tests"
	case within(imported, testenv) && test:
		return ""
	}
	return "it is for tests only"
}

// standard says whether an import is of the standard library: others begin with a host's name.
func standard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

func leaf(path string) bool { return within(path, testenv) || within(path, archtest) }

// room is the first part of a package's path.
func room(path string) string {
	if within(path, hostSide) {
		return hostSide
	}
	first, _, _ := strings.Cut(path, "/")
	return first
}

// wing is a room of internal: the first two parts of a package's path.
func wing(path string) string {
	if parts := strings.SplitN(path, "/", 3); len(parts) > 2 {
		return parts[0] + "/" + parts[1]
	}
	return path
}

// within says whether path is parent or below it.
func within(path, parent string) bool {
	return path == parent || strings.HasPrefix(path, parent+"/")
}
