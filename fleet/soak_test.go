package fleet_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/stage"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/supervisor"
)

// faultsVariable is how many faults the soak makes.
const faultsVariable = "FLEET_FAULTS"

// soak has calls made by workers that are killed, stopped and cut off at random, and
// judges each by what its tool has left in a file before anything else.
type soak struct {
	*world
	starts string
	faults atomic.Int64
	kinds  sync.Map // name of fault or status to *atomic.Int64
	over   atomic.Bool

	mu   sync.Mutex
	seen map[string]*api.Result
}

func (s *soak) count(kind string) {
	n, _ := s.kinds.LoadOrStore(kind, new(atomic.Int64))
	n.(*atomic.Int64).Add(1)
}

// soakWorker is a worker's process, and what is between it and the engine.
type soakWorker struct {
	s    *soak
	name string
	wire *wire
	cmd  *exec.Cmd
}

func (w *soakWorker) start() {
	raw, err := json.Marshal(settings{
		Name: w.name, URL: w.wire.url(), KeyFile: w.s.workers[w.name], Caller: w.s.key.Public(),
		Dir: filepath.Join(w.s.dir, "run-"+w.name), Write: filepath.Dir(w.s.starts),
	})
	if err != nil {
		panic(err)
	}
	w.cmd = exec.Command(os.Args[0])
	w.cmd.Env = append(os.Environ(), workerVariable+"="+string(raw))
	w.cmd.Stderr = w.s.t.Output()
	if err := w.cmd.Start(); err != nil {
		panic(err)
	}
}

func (w *soakWorker) kill() {
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
}

func upTo(d time.Duration) time.Duration { return rand.N(d) }

// fault does one thing to the worker, and is back when it is over.
func (w *soakWorker) fault() string {
	switch n := rand.IntN(100); {
	case n < 45:
		w.stop(upTo(200 * time.Millisecond))
		return "stopped for a moment"
	case n < 60:
		w.wire.hold(true, true, upTo(300*time.Millisecond))
		return "partition"
	case n < 75:
		up := rand.IntN(2) == 0
		w.wire.hold(up, !up, upTo(400*time.Millisecond))
		return "partition one way"
	case n < 87:
		w.wire.cut()
		return "connections cut"
	case n < 97:
		w.kill()
		time.Sleep(upTo(200 * time.Millisecond))
		w.start()
		return "kill -9"
	case n < 98:
		w.stop(6 * time.Second)
		return "stopped for longer than the lease"
	default:
		w.wire.hold(rand.IntN(2) == 0, true, 6*time.Second)
		return "partition longer than the lease"
	}
}

func (w *soakWorker) stop(d time.Duration) {
	_ = w.cmd.Process.Signal(syscall.SIGSTOP)
	time.Sleep(d)
	_ = w.cmd.Process.Signal(syscall.SIGCONT)
}

// lines that a tool of the soak writes, one after another.
const soakLines = 20

// call makes one call and judges what can be judged at once.
func (s *soak) call(id string) {
	r := supervisor.Request{
		ID: id, Sandbox: &supervisor.Policy{Write: []string{filepath.Dir(s.starts)}}, Grace: time.Second,
		Command: &supervisor.Command{Argv: []string{"sh", "-c", fmt.Sprintf("echo $0 >> %s; i=0; while [ $i -lt %d ]; do i=$((i+1)); echo $i; sleep 0.0%d; done", s.starts, soakLines, rand.IntN(5)), id}},
	}
	r.Where = map[string]string{"pool": "soak"}
	c := s.fleet.Start(s.t.Context(), r)
	if rand.IntN(10) == 0 {
		time.Sleep(upTo(300 * time.Millisecond))
		c.Abort(api.ReasonUser)
	}
	await(s.t, c.Done())
	got := c.Result()
	if got.Where != nil && got.Where.StillRunning == "no" {
		if n := running(s.t, id); n != 0 {
			s.t.Errorf("%s: %d processes run, and it was said that none does: %s", id, n, got.Message)
		}
	}
	s.judgeOutput(id, got)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen[id] != nil {
		s.t.Errorf("%s has two results", id)
	}
	s.seen[id] = got
}

// judgeOutput wants a prefix of what the tool writes, and of a whole call all of it.
func (s *soak) judgeOutput(id string, got *api.Result) {
	var whole strings.Builder
	for i := range soakLines {
		fmt.Fprintln(&whole, i+1)
	}
	out := got.Output.Stdout.Head
	if !strings.HasPrefix(whole.String(), out) && len(got.Warnings) == 0 {
		s.t.Errorf("%s: the output is not a prefix: %q", id, out)
	}
	if got.Status == api.StatusOK && out != whole.String() {
		s.t.Errorf("%s is ok with %q", id, out)
	}
}

// started counts the starts of each call.
func (s *soak) started() map[string]int {
	raw, err := os.ReadFile(s.starts)
	if err != nil {
		s.t.Fatal(err)
	}
	n := map[string]int{}
	for _, id := range strings.Fields(string(raw)) {
		n[id]++
	}
	return n
}

// judge holds all results against what was started.
func (s *soak) judge() {
	starts := s.started()
	for id, got := range s.seen {
		n := starts[id]
		never := got.Retry.SideEffects == "none"
		s.count("result " + string(got.Status))
		switch {
		case n > 1:
			s.t.Errorf("%s has started %d times: %s", id, n, got.Message)
		case never && n > 0:
			s.t.Errorf("%s has started, and it was said that it has changed nothing: %s", id, got.Message)
		case got.Status == api.StatusOK && n != 1:
			s.t.Errorf("%s is ok, and has started %d times", id, n)
		}
		delete(starts, id)
	}
	for id := range starts {
		s.t.Errorf("%s has started, and nobody has called it", id)
	}
	wait.Until(s.t, "nothing of any call runs", func() bool { return running(s.t, "-end") == 0 })
}

func TestFleetSoak(t *testing.T) {
	stage.Of(t, "fleet-soak")
	want := int64(1000)
	if n, err := strconv.ParseInt(os.Getenv(faultsVariable), 10, 64); err == nil {
		want = n
	}
	names := []string{"w1", "w2", "w3"}
	s := &soak{world: newWorld(t, names...), seen: map[string]*api.Result{}}
	s.starts = filepath.Join(t.TempDir(), "starts")
	var faults, calls sync.WaitGroup
	for _, name := range names {
		w := &soakWorker{s: s, name: name, wire: newWire(t, s.engine.Address())}
		w.start()
		t.Cleanup(w.kill)
		s.there(name)
		faults.Go(func() {
			for s.faults.Add(1) <= want {
				s.count("fault " + w.fault())
				time.Sleep(upTo(600 * time.Millisecond))
			}
		})
	}
	for caller := range 5 {
		calls.Go(func() {
			for i := 0; !s.over.Load(); i++ {
				s.call(fmt.Sprintf("soak-call-%d-%d-end", caller, i))
				time.Sleep(upTo(100 * time.Millisecond)) // not all of them while no worker takes any
			}
		})
	}
	faults.Wait()
	s.over.Store(true)
	calls.Wait()
	s.judge()
	s.kinds.Range(func(kind, n any) bool {
		t.Logf("%6d %s", n.(*atomic.Int64).Load(), kind)
		return true
	})
}
