package conformance

import (
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/toolhost/toolhost/supervisor"
)

// TestMain lets the test binary play the driver and the plugins: a healthy one,
// and one for each fault.
func TestMain(m *testing.M) {
	slowStart = time.Minute
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "driver":
			ServeDriver()
			return
		case "healthy":
			serveHealthy()
			return
		case "broken":
			serveBroken(os.Args[2])
			return
		case "daemon":
			time.Sleep(time.Minute)
			return
		}
	}
	goleak.VerifyTestMain(m)
}

var self = func() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}()

func newHost(t *testing.T) *supervisor.Supervisor {
	t.Helper()
	host, err := supervisor.New(t.Context(), supervisor.Config{RuntimeDir: t.TempDir(), Admission: supervisor.Admission{Running: 16}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	// Nothing else may share the time that a host has for its first Describe.
	if _, failure := host.Describe(t.Context(), supervisor.Request{Tool: driver}); failure != nil {
		t.Fatal(failure.Message)
	}
	return host
}

var driver = supervisor.Tool{Path: self, Args: []string{"driver"}}

// try runs the suite on a binary that the test binary plays.
func try(t *testing.T, host *supervisor.Supervisor, cases string, args ...string) *Report {
	t.Helper()
	return tryWith(t, host, time.Minute, cases, args...)
}

func tryWith(t *testing.T, host *supervisor.Supervisor, patience time.Duration, cases string, args ...string) *Report {
	t.Helper()
	c, err := ParseCases("test", []byte(cases))
	if err != nil {
		t.Error(err)
		return &Report{}
	}
	r, err := Run(t.Context(), host, Options{
		Tool: supervisor.Tool{Path: self, Args: args}, Driver: driver,
		Cases: c, Grace: 4 * time.Second, Patience: patience,
	})
	if err != nil {
		t.Error(err)
		return &Report{}
	}
	return r
}

func show(t *testing.T, r *Report) {
	t.Helper()
	var b strings.Builder
	for _, c := range r.Checks {
		_ = WriteCheck(&b, c)
	}
	_ = r.WriteSummary(&b)
	t.Log("\n" + b.String())
}
