package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
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

// Each large body counts, whether its length was declared or not; small ones do not.
func TestLargeBodiesHaveAPace(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		bytes    int
		declared bool
		paced    int
	}{{100, true, 0}, {freeBodyBytes + 1, true, 1}, {freeBodyBytes + 1, false, 1}} {
		w := newWorld(t, nil)
		var body io.Reader = strings.NewReader("{}" + strings.Repeat(" ", test.bytes))
		if !test.declared {
			body = io.MultiReader(body) // whose length net/http does not know
		}
		r, err := http.NewRequestWithContext(w.ctx(), "POST", "http://localhost/api/turns", body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		response, err := w.unix.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		p := &w.server.intake.pace
		p.mu.Lock()
		n := len(p.of)
		p.mu.Unlock()
		if response.StatusCode != http.StatusCreated || n != test.paced {
			t.Errorf("%+v: %s, %d clients are paced", test, response.Status, n)
		}
	}
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
