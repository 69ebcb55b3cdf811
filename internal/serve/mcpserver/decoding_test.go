package mcpserver

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A body waits to be decoded where the server around says so, and the wait of others is
// over before it is answered.
func TestBodiesWaitToBeDecoded(t *testing.T) {
	s := newServer(t, setup{})
	var began, done int
	ctx := WithDecoding(t.Context(), func(_ context.Context, bytes int) (func(), error) {
		if began += bytes; bytes > 100 {
			return nil, errors.New("it has gone")
		}
		return func() { done += bytes }, nil
	})
	send := func(body string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		return w
	}
	bad := `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`
	if w := send(bad); w.Code != http.StatusBadRequest || began != len(bad) || done != len(bad) {
		t.Errorf("%d %s: %d bytes began, %d were done", w.Code, w.Body, began, done)
	}
	if w := send(`{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 100) + `"}`); w.Body.Len() != 0 || done != len(bad) {
		t.Errorf("a client that has gone meanwhile: %d %s", w.Code, w.Body)
	}
}
