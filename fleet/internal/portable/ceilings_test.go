package portable

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/network"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

// What calls may be granted of a worker's files is below what its owner allows, wherever
// links lead.
func TestCeilingsOfFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"open", "open/in", "open/deep", "open/deep/er", "openly", "shut"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "shut"), filepath.Join(dir, "open/link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("deep/er", filepath.Join(dir, "open/down")); err != nil {
		t.Fatal(err)
	}
	c := Ceilings{Read: []string{filepath.Join(dir, "open")}, Write: []string{filepath.Join(dir, "open/in")}}
	for path, want := range map[string]string{
		"open": "write none of", "open/in": "", "open/link": "read none of", "openly": "read none of", "shut": "read none of", "open/missing": "read none of", "open/../shut": "read none of",
		// What is opened has .. taken away by its text.
		"open/down/../..": "read none of",
	} {
		full := dir + "/" + path
		r := supervisor.Request{Sandbox: &sandbox.Policy{Read: []string{full}}}
		err := c.Check(r)
		if err == nil {
			r.Sandbox.Write = r.Sandbox.Read
			err = c.Check(r)
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want+" "+full)) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	for path, want := range map[string]bool{"open/in": true, "open/missing": true, "open/missing/in": true, "shut": false, "shut/missing": false, "open/link/missing": false} {
		if c.Shows(filepath.Join(dir, path)) != want {
			t.Errorf("what is shown is told wrongly: %s", path)
		}
	}
	if later := filepath.Join(dir, "later"); !(Ceilings{Write: []string{later}}).Shows(filepath.Join(later, "in")) {
		t.Error("what is below a folder that is still to be made is not shown")
	}
	if err := (Ceilings{}).Check(supervisor.Request{Sandbox: &sandbox.Policy{Read: []string{dir}}}); err == nil {
		t.Error("without a word of the owner files are granted")
	}
}

// Nothing of the network is open unless the owner says so.
func TestCeilingOfTheNetwork(t *testing.T) {
	if got := (Ceilings{}).Supervisor("w1"); got.Network != sandbox.NetworkNone {
		t.Errorf("%+v", got)
	}
	some := supervisor.Ceiling{Grants: []network.Grant{{Host: "a.test"}}}
	if got := (Ceilings{Network: some}).Supervisor("w1"); got.Network == sandbox.NetworkNone {
		t.Errorf("%+v", got)
	}
	host := supervisor.Ceiling{Network: sandbox.NetworkHost}
	if got := (Ceilings{Network: host}).Supervisor("w1"); got.Network != sandbox.NetworkHost {
		t.Errorf("%+v", got)
	}
}

// Limits and ceilings are told as people write them, and one that is over another differs
// from it.
func TestCeilingsOfLimits(t *testing.T) {
	c := Ceilings{MemoryBytes: 64 << 20, Pids: 10, CPUPercent: 150}
	for want, asked := range map[string]supervisor.Limits{
		"memory of 1.5GiB is over the worker's ceiling of 64MiB: ":        {MemoryBytes: 3 << 29},
		"memory of 67108865 bytes is over the worker's ceiling of 64MiB:": {MemoryBytes: 64<<20 + 1},
		"memory of infinity is over the worker's ceiling of 64MiB: ":      {MemoryBytes: supervisor.Unlimited},
		"pids of 11 is over the worker's ceiling of 10: ":                 {Pids: 11},
		"cpu of infinity is over the worker's ceiling of 150%: ":          {CPUPercent: supervisor.Unlimited},
		"cpu of 151% is over the worker's ceiling of 150%: ":              {CPUPercent: 151},
	} {
		limits := asked.Over(supervisor.Limits{MemoryBytes: 1, Pids: 1, CPUPercent: 1})
		if err := c.Check(supervisor.Request{Limits: limits}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
