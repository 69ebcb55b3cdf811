package supervisor

import (
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "rewrite generated documents")

// needsDocs leaves a test out in the VM, which has no source tree.
func needsDocs(t *testing.T) {
	t.Helper()
	if os.Getenv("TOOLHOST_VM") != "" {
		t.Skip("the guest has no source tree: this test is the host's")
	}
}
