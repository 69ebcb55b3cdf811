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
		asked := 0
		refuse := func(n int) {
			for range n {
				asked++
				trail.refused(httpapi.Refusal{Path: strconv.Itoa(asked), Err: errors.New("no")})
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

// A client that is refused the same for days has a record an hour, with how often; another
// refusal has its own at once.
func TestTheSameRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		trail := trail{logger: hclog.New(&hclog.LoggerOptions{Output: &logged})}
		records := func() int { return strings.Count(logged.String(), "\n") }
		same := httpapi.Refusal{Method: "GET", Path: "/api/whoami", From: "192.0.2.1", Err: errors.New("no")}
		for range 24 * 60 * 4 {
			trail.refused(same)
			trail.further(false)
			time.Sleep(15 * time.Second)
		}
		if got := records(); got > 2*24 {
			t.Errorf("%d records of one refusal in a day", got)
		}
		if !strings.Contains(logged.String(), `what="further requests" outcome="239 more"`) {
			t.Errorf("nothing says how often it was repeated:\n%s", &logged)
		}
		trail.further(true)
		before := records()
		trail.refused(httpapi.Refusal{Method: "GET", Path: "/api/tools", From: "192.0.2.1", Err: errors.New("no")})
		if got := records() - before; got != 1 {
			t.Errorf("another refusal has %d records", got)
		}
	})
}

// How often a refusal was repeated is on record within an hour, also if no other one follows.
func TestTheSameRefusalThatStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		trail := trail{logger: hclog.New(&hclog.LoggerOptions{Output: &logged})}
		for range 10 {
			trail.refused(httpapi.Refusal{Method: "GET", Path: "/api/whoami", From: "192.0.2.1", Err: errors.New("no")})
		}
		trail.further(false)
		if got := strings.Count(logged.String(), "\n"); got != 1 {
			t.Errorf("%d records at once", got)
		}
		time.Sleep(refusalAgain)
		trail.further(false)
		trail.further(false)
		if got := strings.Count(logged.String(), `what="further requests" outcome="9 more"`); got != 1 {
			t.Errorf("%d records say how often it was repeated:\n%s", got, &logged)
		}
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
