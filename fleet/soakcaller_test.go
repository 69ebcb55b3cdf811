package fleet_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet"
	"github.com/toolhost/toolhost/supervisor"
)

// callerVariable has the test binary be a caller of the soak with these settings, in JSON.
const callerVariable = "TOOLHOST_TEST_CALLER"

// callerSettings are those of a caller that makes calls until it is told to end. Its tools
// write to Starts, and it writes what comes of them to History.
type callerSettings struct {
	URL, KeyFile, Starts, History string
	Workers                       map[string]string
}

// note is a line of the history: of a call that begins, and of one that has its result.
type note struct {
	Call   string
	At     int64 // ns
	Status api.Status
	// Never: it was said to have started nowhere. Output is what had come of it, Missed
	// that some is known to be missing.
	Never  bool
	Output string
	Missed bool
	// Alive are processes of a call of which it was said that nothing runs.
	Alive int
}

// soakCaller is that process.
type soakCaller struct {
	callerSettings
	fleet   *fleet.Fleet
	life    string
	history *os.File
}

func beSoakCaller(raw string) {
	c := &soakCaller{life: rand.Text()[:8]}
	if err := c.run([]byte(raw)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (c *soakCaller) run(raw []byte) (err error) {
	if err := json.Unmarshal(raw, &c.callerSettings); err != nil {
		return err
	}
	if c.history, err = os.OpenFile(c.History, os.O_APPEND|os.O_WRONLY, 0); err != nil {
		return err
	}
	key, err := fleet.ReadKey(c.KeyFile)
	if err != nil {
		return err
	}
	c.fleet, err = fleet.Open(context.Background(), fleet.Config{
		URL: c.URL, Key: key, Workers: c.Workers, WorkersOnly: true, Logger: hclog.New(&hclog.LoggerOptions{Name: "caller", Output: os.Stderr}),
	})
	if err != nil {
		return err
	}
	told, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var lines sync.WaitGroup
	for line := range 3 * len(c.Workers) { // some wait
		lines.Go(func() {
			for i := 0; told.Err() == nil; i++ {
				kind := "once"
				if mrand.IntN(4) == 0 {
					kind = harmless
				}
				if c.call(fmt.Sprintf("soak-%s-%s-%d-%d-end", kind, c.life, line, i)).Status == api.StatusOverloaded {
					time.Sleep(upTo(200 * time.Millisecond)) // no worker takes any
				}
			}
		})
	}
	lines.Wait()
	return errors.Join(c.fleet.Close(), c.history.Close())
}

var errFull = errors.New("no space left on the journal's device")

// call makes one call. Its tool says that it starts, and when, before all else.
func (c *soakCaller) call(id string) *api.Result {
	r := supervisor.Request{
		ID: id, Sandbox: &supervisor.Policy{Write: []string{filepath.Dir(c.Starts)}}, Grace: time.Second,
		Command: &supervisor.Command{Argv: []string{"sh", "-c", fmt.Sprintf(
			"echo $0 $(date +%%s%%N) >> %s; i=0; while [ $i -lt %d ]; do i=$((i+1)); echo $i; sleep 0.0%d; done", c.Starts, soakLines, mrand.IntN(5)), id}},
	}
	r.Placed = func(string, int) error {
		if mrand.IntN(50) == 0 {
			return errFull
		}
		return nil
	}
	r.Where, r.Tool.Idempotent = map[string]string{"pool": "soak"}, isHarmless(id)
	c.note(note{Call: id})
	call := c.fleet.Start(context.Background(), r)
	if mrand.IntN(10) == 0 {
		time.Sleep(upTo(300 * time.Millisecond))
		call.Abort(api.ReasonUser)
	}
	got := call.Result()
	n := note{
		Call: id, Status: got.Status, Never: got.Retry.SideEffects == "none", Output: got.Output.Stdout.Head, Missed: len(got.Warnings) > 0,
	}
	if got.Where != nil && got.Where.StillRunning == "no" {
		n.Alive, _ = begunWith(id)
	}
	c.note(n)
	return got
}

func (c *soakCaller) note(n note) {
	n.At = realTime()
	raw, err := json.Marshal(n)
	if err == nil {
		_, err = c.history.Write(append(raw, '\n'))
	}
	if err != nil {
		panic(err)
	}
}

// realTime is the machine's, as tools have it, whatever this process takes for the time.
func realTime() int64 {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME, &at); err != nil {
		panic(err)
	}
	return at.Nano()
}

// harmless is in the names of calls that may be made twice.
const harmless = "twice"

func isHarmless(id string) bool { return strings.Contains(id, harmless) }

// soakLines are what a tool of the soak writes, one after another.
const soakLines = 20

func upTo(d time.Duration) time.Duration { return mrand.N(d) }
