package describe

import (
	"context"
	"errors"
	"testing"

	"github.com/toolhost/toolhost/api"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
)

// A caller that gives up between a binary's answer and its reading has cancelled: the
// binary has not broken the protocol.
func TestReadingThatIsGivenUp(t *testing.T) {
	d := NewCache()
	d.reading <- struct{}{} // by another
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := d.Read(ctx, &pluginv1.DescribeResponse{})
	if r, ok := errors.AsType[*outcome.Refusal](err); !ok || r.Status != api.StatusCancelled {
		t.Errorf("%v, not a refusal as cancelled", err)
	}
}
