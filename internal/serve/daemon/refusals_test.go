package daemon

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/internal/serve/httpapi"
)

// Refusals that were too many are on record without another: once there may be a record, and
// at the end.
func TestRefusalsThatWereTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		trail := trail{logger: hclog.New(&hclog.LoggerOptions{Output: &logged})}
		refuse := func(n int) {
			for range n {
				trail.refused(httpapi.Refusal{Err: errors.New("no")})
			}
		}
		said := func(want string) {
			t.Helper()
			_, outcome, _ := strings.Cut(logged.String(), `what="further requests" outcome="`)
			if got, _, _ := strings.Cut(outcome, `"`); got != want {
				t.Errorf("%q is on record, want %q", got, want)
			}
			logged.Reset()
		}
		refuse(refusalBurst + 10)
		trail.further(false)
		said("")
		time.Sleep(refusalEvery)
		trail.further(false)
		said("10 more")
		refuse(3)
		trail.further(true)
		said("3 more")
		trail.further(true)
		said("")
	})
}

// All refusals are in the chain of a daemon that has stopped.
func TestRefusalsBeforeTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.Listen = "127.0.0.1:0"
	d := w.daemon()
	const n = refusalBurst + 10
	for range n {
		r, err := http.Get(d.tcp() + "/api/tools")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	d.signal(syscall.SIGTERM)
	d.code()
	got := 0
	for _, a := range chained(t, w.State) {
		if a.Action != journal.ActionRefused {
			continue
		}
		more := 1
		if a.What == "further requests" {
			more, _ = strconv.Atoi(strings.TrimSuffix(a.Outcome, " more"))
		}
		got += more
	}
	if got != n {
		t.Errorf("%d of %d refusals are on record", got, n)
	}
}
