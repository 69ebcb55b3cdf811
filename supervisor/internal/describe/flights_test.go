package describe

import (
	"context"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
)

// Nothing is started for who has given up before.
func TestAContextThatIsOverDescribesNothing(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(outcome.AbortCause(api.ReasonParent))
	_, err := NewFlights().Do(ctx, Key{}, func(context.Context) (*Described, error) {
		t.Error("it was asked")
		return &Described{}, nil
	})
	if refused, ok := err.(*outcome.Refusal); !ok || refused.Status != api.StatusCancelled || refused.Reason != api.ReasonParent {
		t.Errorf("error %v", err)
	}
}
