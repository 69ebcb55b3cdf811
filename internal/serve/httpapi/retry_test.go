package httpapi

import (
	"errors"
	"net/http/httptest"
	"testing"
)

// Who is sent away for a while is told for how long.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{codeUnready: "2", codeBusy: "2", codeNotFound: ""} {
		w := httptest.NewRecorder()
		fail(w, errors.Join(refuse(code, "x", "y")))
		if got := w.Header().Get("Retry-After"); got != want {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
}
