package turn

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/toolhost/toolhost/plugin"
)

// TestMain makes the test binary the tool of tests with a real supervisor.
func TestMain(m *testing.M) {
	playServer()
	if os.Getenv("TOOLHOST_PLUGIN") != "" {
		plugin.Serve(plugin.NewTool(plugin.Tool{Name: "echo"}, echo))
		return
	}
	goleak.VerifyTestMain(m)
}
