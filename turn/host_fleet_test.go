//go:build fleetsuite

package turn

import (
	"context"
	"io"
	"testing"

	"github.com/toolhost/toolhost/fleet/fleettest"
	"github.com/toolhost/toolhost/supervisor"
)

func openHost(t *testing.T, c supervisor.Config) (io.Closer, func(context.Context, supervisor.Request) Running, error) {
	host, err := fleettest.Open(t.Context(), c)
	return host, func(ctx context.Context, r supervisor.Request) Running { return host.Start(ctx, r) }, err
}

func playServer() { fleettest.Main() }
