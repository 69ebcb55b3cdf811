//go:build !fleetsuite

package turn

import (
	"context"
	"io"
	"testing"

	"github.com/toolhost/toolhost/supervisor"
)

// openHost makes a supervisor, or with -tags fleetsuite a fleet (see host_fleet_test.go).
func openHost(t *testing.T, c supervisor.Config) (io.Closer, func(context.Context, supervisor.Request) Running, error) {
	host, err := supervisor.New(t.Context(), c)
	return host, Supervised(host), err
}

func playServer() {}
