//go:build !fleetsuite

package supervisor_test

import (
	"testing"

	"github.com/toolhost/toolhost/supervisor"
)

// What these tests make calls with: a supervisor, or with -tags fleetsuite a fleet (see
// host_fleet_test.go).
type (
	testHost = *supervisor.Supervisor
	testCall = *supervisor.Call
)

func openHost(t testing.TB, c supervisor.Config) (testHost, error) {
	return supervisor.New(t.Context(), c)
}

func playServer() {}
