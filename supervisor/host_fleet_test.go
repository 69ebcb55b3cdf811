//go:build fleetsuite

package supervisor_test

import (
	"testing"

	"github.com/toolhost/toolhost/fleet"
	"github.com/toolhost/toolhost/fleet/fleettest"
	"github.com/toolhost/toolhost/supervisor"
)

type (
	testHost = *fleettest.Host
	testCall = *fleet.Call
)

func openHost(t testing.TB, c supervisor.Config) (testHost, error) {
	return fleettest.Open(t.Context(), c)
}

func playServer() { fleettest.Main() }
