package fleet

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	"github.com/toolhost/toolhost/fleet/internal/link"
	"github.com/toolhost/toolhost/fleet/internal/seal"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
)

// hearing is a Fleet without a connection that hears w1's beats, and its log.
func hearing(t *testing.T) (f *Fleet, beat func(*fleetv1.Beat), log *bytes.Buffer) {
	t.Helper()
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	log = &bytes.Buffer{}
	f = &Fleet{config: Config{Key: key, Logger: hclog.New(&hclog.LoggerOptions{Output: log})}, life: "l"}
	if f.curve, err = seal.NewCurve(); err != nil {
		t.Fatal(err)
	}
	f.peers = map[string]*peer{"w1": {name: "w1", frames: &nats.Subscription{}}}
	return f, func(b *fleetv1.Beat) {
		raw, err := proto.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		f.hear(&nats.Msg{Subject: link.WorkerBeat("w1"), Data: raw})
		synctest.Wait() // for the echo
	}, log
}

// A worker that says with each beat that it has left, and is another process, is one that has
// just come: what it is logged and echoed for is bounded.
func TestLivesThatEndAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, beat, log := hearing(t)
		live := func(n int) {
			beat(&fleetv1.Beat{Epoch: fmt.Sprint("e", n), Number: 1, Leaving: true, LeaseMs: 2000, Version: strings.Repeat("v", 100_000), Protocol: link.Protocol})
		}
		for n := range 1000 {
			live(n)
		}
		if lives := strings.Count(log.String(), "a worker is there"); lives != 1 || log.Len() > 2000 {
			t.Errorf("%d lives are logged, in %d bytes", lives, log.Len())
		}
		time.Sleep(suspectAfter)
		if live(1000); f.peers["w1"].epoch != "e1000" {
			t.Errorf("a later one is not heard, but %s", f.peers["w1"].epoch)
		}
	})
}

// A worker that has left stays away, also where an older beat of it comes later.
func TestABeatThatWasOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, beat, _ := hearing(t)
		for _, n := range []uint64{1, 3, 2} {
			beat(&fleetv1.Beat{Epoch: "e", Number: n, Leaving: n == 3, LeaseMs: 2000, Protocol: link.Protocol})
		}
		if left, _ := f.Gone(); len(left) != 1 || len(f.Workers()) != 0 {
			t.Errorf("these have left: %v; there are %+v", left, f.Workers())
		}
		if beat(&fleetv1.Beat{Epoch: "e", LeaseMs: 2000}); f.refused != 1 {
			t.Errorf("a beat without a number is taken")
		}
	})
}
