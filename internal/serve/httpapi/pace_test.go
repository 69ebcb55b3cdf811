package httpapi

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/budget/memory"
)

// One client's large bodies wait for each other, and not for those of others.
func TestBodiesOfOneClientArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pace
		took := func(client string, bytes int64) time.Duration {
			began := time.Now()
			if err := p.wait(t.Context(), client, bytes); err != nil {
				t.Error(err)
			}
			return time.Since(began)
		}
		for _, client := range []string{"a", "b"} {
			for range 2 {
				if d := took(client, paceBurst/2); d != 0 {
					t.Errorf("%s has waited %s", client, d)
				}
			}
			want := time.Second * paceBurst / 2 / time.Duration(paceBytes*processors)
			if d := took(client, paceBurst/2).Round(time.Microsecond); d != want.Round(time.Microsecond) {
				t.Errorf("%s has waited %s, want %s", client, d, want)
			}
		}
		took("c", 4*paceBurst) // larger than any, and takes no longer than the largest
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := p.wait(ctx, "c", paceBurst); !errors.Is(err, memory.ErrFull) {
			t.Errorf("without the time for it: %v", err)
		}
		cancel()
		if err := p.wait(ctx, "c", 1); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
	})
}

func TestPacesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pace
		for i := range maxPaces + 10 {
			_ = p.wait(t.Context(), fmt.Sprint(i), 1)
		}
		if n := len(p.of); n != maxPaces+1 {
			t.Errorf("%d clients are known", n)
		}
		time.Sleep(time.Second) // of the bubble's clock
		_ = p.wait(t.Context(), "new", 1)
		if n := len(p.of); n != 1 {
			t.Errorf("%d clients are known after a rest", n)
		}
	})
}
