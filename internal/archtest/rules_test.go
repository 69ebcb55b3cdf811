package archtest

import (
	"slices"
	"strings"
	"testing"
)

const module = "example.org/m"

func TestImports(t *testing.T) {
	const ours = module + "/"
	for _, c := range []struct {
		path, imported string
		test           bool
		want           string // part of the violation; empty for none
	}{
		{"cmd/toolhost", ours + "supervisor", false, ""},
		{"cmd/toolhost", ours + "internal/tools/config", false, ""},
		{"cmd/toolhost", "golang.org/x/term", false, ""},
		{"internal/journal", ours + "turn", false, ""},
		{"internal/journal", ours + "internal/tools/config", false, "in internal, too"},
		{"turn", ours + "budget", false, ""},
		{"supervisor", ours + "internal/plugin/host", false, ""},
		{"supervisor", ours + "sandbox", false, ""},
		{"plugin", ours + "plugin/proto/v1", false, ""},
		{"internal/plugin/host", ours + "plugin", false, ""},
		{"bench", ours + "supervisor", false, ""},
		{"api", "encoding/json", false, ""},
		{"api", ours + "budget", false, "standard library only"},
		{"api", "google.golang.org/grpc/codes", false, "standard library only"},
		{"api", "github.com/google/jsonschema-go/jsonschema", true, ""},
		{"client", ours + "api", false, ""},
		{"client", "net/http", false, ""},
		{"client", ours + "turn", false, "nothing but api"},
		{"client", "github.com/google/uuid", false, "nothing but api"},
		{"client", ours + "turn", true, ""},
		{"budget", ours + "api", false, ""},
		{"examples/hosts/small", ours + "api", false, ""},
		{"budget", ours + "turn", false, "down only"},
		{"supervisor", ours + "turn", false, "down only"},
		{"internal/serve/httpapi", "github.com/getkin/kin-openapi/openapi3", false, "for tests only"},
		{"internal/serve/httpapi", "github.com/getkin/kin-openapi/openapi3", true, ""},
		{"internal/testenv/openapi", "github.com/santhosh-tekuri/jsonschema/v6", false, ""},
		{"supervisor", ours + "internal/tools/config", false, "down only"},
		{"internal/serve/daemon", ours + "internal/tools/config", false, ""},
		{"internal/serve/daemon", ours + "internal/serve/httpapi", false, ""},
		{"internal/serve/daemon", ours + "internal/cli/top", false, "in internal, too"},
		{"internal/tools/config", ours + "internal/serve/daemon", false, "in internal, too"},
		{"internal/new", ours + "internal/text", false, ""},
		{"internal/new", ours + "internal/tools/config", false, "a rank"},
		{"turn", ours + "internal/tools/config", true, "down only"},
		{"supervisor", ours + "supervisor/internal/call", false, ""},
		{"supervisor/internal/call", ours + "supervisor/internal/process", false, ""},
		{"supervisor/internal/call", ours + "supervisor/internal/kept", false, "in supervisor, too"},
		{"supervisor/internal/outcome", ours + "supervisor/internal/call", false, "in supervisor, too"},
		{"supervisor/spec", ours + "supervisor", false, "in supervisor, too"},
		{"supervisor/internal/attic", ours + "supervisor/spec", false, "give both"},
		{"sandbox", ours + "cgroup", false, "down only"},
		{"cgroup", ours + "budget", false, "down only"},
		{"internal/plugin/host", ours + "sandbox", false, "contract alone"},
		{"budget", ours + "plugin", true, "down only"},
		{"turn", ours + "cmd/toolhost", false, "nothing imports cmd"},
		{"cmd/toolhost", ours + "bench", false, "nothing imports bench"},

		{"plugin", ours + "internal/plugin/host", false, "down only"},
		{"plugin/proto/v1", ours + "internal/plugin/host", false, "down only"},
		{"plugin", ours + "internal/plugin/rpc", false, ""},
		{"plugin", "github.com/hashicorp/go-hclog", false, "without go-plugin's packages"},
		{"supervisor", "github.com/hashicorp/go-hclog", false, ""},
		{"plugin", "github.com/hashicorp/go-plugin", true, ""},
		{"internal/plugin/host", "github.com/hashicorp/go-plugin", false, "without go-plugin's packages"},
		{"internal/plugin/host", "github.com/hashicorp/go-plugin", true, ""},
		{"plugin", "google.golang.org/grpc/codes", false, ""},
		{"plugin/proto/v1/toolgrpc", "google.golang.org/grpc", false, ""},
		{"plugin", "google.golang.org/grpc", true, ""},
		{"plugin", "google.golang.org/grpc", false, "without grpc-go"},
		{"internal/plugin/rpc", "google.golang.org/grpc/status", false, "without grpc-go"},
		{"plugin", ours + "plugin/proto/v1/toolgrpc", false, "without grpc-go"},

		{"examples/tools/search", ours + "plugin", false, ""},
		{"examples/hosts/small", ours + "supervisor", false, ""},
		{"examples/hosts/small", ours + "budget", false, ""},
		{"examples/hosts/small", ours + "internal/plugin/host", false, "as a user"},
		{"examples/hosts/small", ours + "internal/tools/config", true, "as a user"},

		{"fleet/engine", "github.com/nats-io/nats-server/v2/server", false, ""},
		{"fleet", "github.com/nats-io/nats-server/v2/server", false, "the server in itself"},
		{"fleet", "github.com/nats-io/nats-server/v2/server", true, ""},
		{"cmd/toolhost", "github.com/nats-io/nats-server/v2/server", true, "the server in itself"},
		{"fleet", "github.com/anishathalye/porcupine", false, "for tests only"},
		{"fleet/worker", "github.com/nats-io/nats.go", false, ""},
		{"fleet/fleettest", "github.com/nats-io/nats-server/v2/server", false, ""},
		{"fleet", ours + "fleet/fleettest", true, ""},
		{"fleet", ours + "fleet/fleettest", false, "for tests only"},
		{"supervisor", ours + "fleet/fleettest", true, ""},
		{"supervisor", ours + "fleet", true, ""},
		{"supervisor", ours + "fleet", false, "down only"},
		{"cmd/toolhost", "github.com/nats-io/nkeys", false, "only fleet speaks"},
		{"fleet", ours + "supervisor", false, ""},
		{"fleet", ours + "turn", false, "down only"},
		{"internal/serve/daemon", ours + "fleet", false, "to leave out"},
		{"internal/fleetops", ours + "fleet", false, ""},
		{"internal/fleetops", ours + "internal/serve/daemon", false, ""},
		{"internal/cli/doctor", ours + "internal/fleetops", false, "in internal, too"},
		{"internal/serve/daemon", ours + "internal/fleetops", false, "in internal, too"},
		{"cmd/toolhost", ours + "internal/fleetops", false, ""},
		{"cmd/toolhost", ours + "fleet", false, ""},

		{"cgroup", "golang.org/x/sys/unix", false, ""},
		{"sandbox", "golang.org/x/sys/unix", false, ""},
		{"internal/plugin/host", "golang.org/x/sys/unix", false, ""},
		{"internal/testenv/vm/init", "golang.org/x/sys/unix", false, ""},
		{"supervisor", "golang.org/x/sys/unix", true, ""},
		{"supervisor", "golang.org/x/sys/unix", false, "speak to the kernel"},
		{"plugin", "golang.org/x/sys/unix", false, "speak to the kernel"},
		{"cmd/toolhost", "golang.org/x/sys/unix", false, "speak to the kernel"},
		{"supervisor", "golang.org/x/sysmore", false, ""},

		{"cgroup", ours + "internal/testenv", true, ""},
		{"cgroup", ours + "internal/testenv", false, "for tests only"},
		{"cgroup", ours + "internal/archtest", true, "for tests only"},
		{"internal/testenv/vm", ours + "internal/testenv/vm/protocol", false, ""},
		{"internal/testenv/vm", ours + "cgroup", false, "stands apart"},
		{"internal/archtest", ours + "cgroup", true, "stands apart"},
	} {
		p := sound(c.path)
		p.Files[0].Test, p.Files[0].Imports = c.test, []string{"fmt", c.imported}
		expect(t, p, c.want)
	}
}

func TestShape(t *testing.T) {
	undocumented := sound("budget")
	undocumented.Files[0].Doc = false
	expect(t, undocumented, "no package doc")

	documentedElsewhere := sound("budget")
	documentedElsewhere.Files = append(documentedElsewhere.Files, File{Name: "b.go"})
	expect(t, documentedElsewhere, "")

	documentedInTest := sound("budget")
	documentedInTest.Files[0].Test = true
	expect(t, documentedInTest, "")
	documentedInTest.Files = append(documentedInTest.Files, File{Name: "b.go"})
	expect(t, documentedInTest, "no package doc")

	full := sound("budget")
	full.Files[0].Lines = maxLines
	expect(t, full, "")

	long := sound("budget")
	long.Files[0].Lines = maxLines + 1
	expect(t, long, "a.go has 401 lines")

	generated := sound("budget")
	generated.Files[0].Lines, generated.Files[0].Generated = 5000, true
	expect(t, generated, "")

	expect(t, sound("util"), "no room")
}

// sound is a package without a fault.
func sound(path string) Package {
	return Package{Path: path, Files: []File{{Name: "a.go", Doc: true, Lines: 10}}}
}

// expect wants exactly one violation, containing want, or none where want is empty.
func expect(t *testing.T, p Package, want string) {
	t.Helper()
	got := Check(module, []Package{p})
	if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.Contains(got[0], want)) {
		t.Errorf("%s importing %q: violations %q, want %q", p.Path, p.Files[0].Imports, got, want)
	}
}

func TestCheckIsSorted(t *testing.T) {
	if got := Check(module, []Package{sound("zoo"), sound("attic")}); len(got) != 2 || !slices.IsSorted(got) {
		t.Errorf("violations %q, want two, sorted", got)
	}
}
