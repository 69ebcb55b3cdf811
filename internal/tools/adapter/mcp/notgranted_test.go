package mcp

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// A server below a folder that is not granted is described with the remedy.
func TestADescriptionNamesWhatIsNotGranted(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "server.sh")
	if err := os.WriteFile(program, []byte("exit 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	host := newHost(t)
	for _, kept := range []*supervisor.Keep{nil, {Asked: true}} {
		r := request([]string{"sh", program}, "", "", supervisor.Policy{})
		r.Keep = kept
		_, got := host.Describe(t.Context(), r)
		if got == nil || got.Status != api.StatusStartFailed || !slices.Equal(got.Retry.NotGranted, []string{program}) || !strings.Contains(got.Message, "grant it (--read "+program+", or read: in toolhost.yaml)") {
			t.Errorf("%+v", got)
		}
	}
}
