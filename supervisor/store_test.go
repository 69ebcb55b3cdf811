package supervisor_test

import (
	"os"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// A store that cannot be written is the host's trouble, and no fault of the tool.
func TestAStoreThatFailsIsTheHosts(t *testing.T) {
	dir := t.TempDir() + "/store"
	host := newHost(t, supervisor.Config{StoreDir: dir})
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	result := call(t, host, request("echo", `{"text":"x"}`))
	wantStatus(t, result, api.StatusStartFailed)
	if result.Reason != api.ReasonHost || !strings.Contains(result.Message, "store "+dir) {
		t.Errorf("%s: %s", result.Reason, result.Message)
	}
}
