package fleet_test

import (
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

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/fleet/fleettest"
	"github.com/toolhost/toolhost/internal/testenv/stage"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// faultsVariable is how many faults the soak makes, pauseVariable the longest pause between
// two of a party.
const (
	faultsVariable = "FLEET_FAULTS"
	pauseVariable  = "FLEET_PAUSE"
)

// soak has calls made while callers, workers, the servers between them and their links
// fail at random, and judges each call by what its tool has left in a file before anything
// else.
type soak struct {
	*world
	public          map[string]string
	servers         *fleettest.Servers
	starts, history string
	left            atomic.Int64 // faults to come
	counts          sync.Map     // by name, *atomic.Int64
}

func (s *soak) count(name string) {
	n, _ := s.counts.LoadOrStore(name, new(atomic.Int64))
	n.(*atomic.Int64).Add(1)
}

// fault is one kind, and how often it comes among the others of a party.
type fault struct {
	name  string
	often int
	make  func()
}

// inject makes faults of a party until there were enough.
func (s *soak) inject(pause time.Duration, faults []fault) {
	sum := 0
	for _, f := range faults {
		sum += f.often
	}
	for s.left.Add(-1) >= 0 {
		n := rand.IntN(sum)
		for _, f := range faults {
			if n -= f.often; n < 0 {
				f.make()
				s.count("fault: " + f.name)
				break
			}
		}
		time.Sleep(upTo(pause))
	}
}

// party is a process of the soak, and what is between it and the servers.
type party struct {
	s     *soak
	wire  *wire
	cmd   *exec.Cmd
	begin func() *exec.Cmd
}

func (s *soak) newParty(begin func(url string) *exec.Cmd) *party {
	var addresses []string
	for _, server := range s.servers.List {
		addresses = append(addresses, strings.TrimPrefix(server.URL, "nats://"))
	}
	p := &party{s: s, wire: newWire(s.t, addresses...)}
	p.begin = func() *exec.Cmd { return begin(p.wire.url()) }
	p.start()
	s.t.Cleanup(p.kill)
	return p
}

func (p *party) start() {
	p.cmd = p.begin()
	if err := p.cmd.Start(); err != nil {
		panic(err)
	}
}

func (p *party) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// lease is that of the soak's workers; tooLong is longer than a lease and what comes after.
const tooLong = 6 * time.Second

func (p *party) faults() []fault {
	short := func(name string, often int, make func(d time.Duration)) fault {
		return fault{name, often, func() { make(upTo(400 * time.Millisecond)) }}
	}
	return []fault{
		{"clock set", 20, func() { stepClock(p.cmd.Process) }},
		short("stopped", 20, func(d time.Duration) { pause(p.cmd.Process, d) }),
		short("partition", 15, func(d time.Duration) { p.wire.hold(true, true, d) }),
		short("partition one way", 15, func(d time.Duration) { up := rand.IntN(2) == 0; p.wire.hold(up, !up, d) }),
		short("messages repeated, late and overtaken", 15, p.wire.roughen),
		{"connections cut", 12, p.wire.cut},
		{"kill -9", 10, func() {
			p.kill()
			time.Sleep(upTo(200 * time.Millisecond))
			p.start()
		}},
		{"stopped beyond the lease", 1, func() { pause(p.cmd.Process, tooLong) }},
		{"partition beyond the lease", 1, func() { p.wire.hold(rand.IntN(2) == 0, true, tooLong) }},
	}
}

// stepClock sets the wall clock of a party's process, and nobody else's.
var stepClock = func(*os.Process) { panic("built without the tag clockstep: run make fleet-soak") }

// worker starts one. Its clocks since boot are its own, and other ones in each life.
func (s *soak) worker(name string) *party {
	dir := filepath.Join(s.dir, "run-"+name)
	return s.newParty(func(url string) *exec.Cmd {
		cmd := player(s.t, workerVariable, settings{
			Name: name, URL: url, KeyFile: s.workers[name], Caller: s.key.Public(), Dir: dir, Write: filepath.Dir(s.starts),
		})
		offset := strconv.Itoa(rand.IntN(1_000_000))
		apart := exec.Command("unshare", "--time", "--boottime", offset, "--monotonic", offset, cmd.Path)
		apart.Env, apart.Stderr, apart.SysProcAttr = cmd.Env, cmd.Stderr, cmd.SysProcAttr
		return apart
	})
}

// fill has a worker's ledger find no room for a while, in the middle of a line or before.
func (p *party) fill(ledger string, d time.Duration) {
	info, err := os.Stat(ledger)
	if err != nil {
		return // it has just been killed
	}
	limit := unix.Rlimit{Cur: uint64(info.Size()) + uint64(rand.IntN(40)), Max: unix.RLIM_INFINITY}
	if unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_FSIZE, &limit, nil) == nil {
		time.Sleep(d)
		limit.Cur = unix.RLIM_INFINITY
		_ = unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_FSIZE, &limit, nil)
	}
}

func faultsOf(n *fleettest.Server) []fault {
	return []fault{
		{"a server is stopped", 60, func() { pause(n.Process(), upTo(time.Second)) }},
		{"kill -9 of a server", 38, func() {
			n.Kill()
			time.Sleep(upTo(time.Second))
			if err := n.Restart(); err != nil {
				panic(err)
			}
		}},
		{"a server is stopped beyond the lease", 2, func() { pause(n.Process(), tooLong) }},
	}
}

// begin starts all.
func (s *soak) begin() (faults [][]fault, caller *party) {
	s.servers = newCluster(s.t, s.key.Public(), s.public)
	for name := range s.public {
		w := s.worker(name)
		full := fault{"full disk", 8, func() { w.fill(filepath.Join(s.dir, "run-"+name, "ledger"), upTo(400*time.Millisecond)) }}
		faults = append(faults, append(w.faults(), full))
	}
	caller = s.newParty(func(url string) *exec.Cmd {
		return player(s.t, callerVariable, callerSettings{
			URL: url, KeyFile: filepath.Join(s.dir, "caller"), Starts: s.starts, History: s.history, Workers: s.public,
		})
	})
	return append(faults, caller.faults()), caller
}

func TestFleetSoak(t *testing.T) {
	stage.Of(t, "fleet-soak")
	want, err := strconv.ParseInt(os.Getenv(faultsVariable), 10, 64)
	if err != nil {
		want = 1000
	}
	pause, err := time.ParseDuration(os.Getenv(pauseVariable))
	if err != nil {
		pause = 500 * time.Millisecond
	}
	s := &soak{}
	s.world, s.public = newKeys(t, "w1", "w2", "w3", "w4")
	files := t.TempDir()
	s.starts, s.history = filepath.Join(files, "starts"), filepath.Join(s.dir, "history")
	for _, path := range []string{s.starts, s.history} {
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	s.left.Store(want)
	parties, caller := s.begin()
	var injecting sync.WaitGroup
	for _, faults := range parties {
		injecting.Go(func() { s.inject(pause, faults) })
	}
	for _, server := range s.servers.List {
		injecting.Go(func() { s.inject(6*pause, faultsOf(server)) })
	}
	injecting.Wait()
	if err := caller.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := caller.cmd.Wait(); err != nil {
		t.Errorf("the last caller: %v", err)
	}
	s.report()
	wait.Until(t, "nothing of any call runs", func() bool { return running(t, "-end") == 0 })
}

// report judges all calls.
func (s *soak) report() {
	calls := histories(s.t, s.history, s.starts)
	for _, h := range calls {
		if len(h.ended) == 0 {
			s.count("call: its caller has died")
		}
		for _, n := range h.ended {
			s.count(fmt.Sprintf("call: %s, started %d times", n.Status, len(h.starts)))
		}
	}
	for _, wrong := range judge(calls) {
		s.t.Error(wrong)
	}
	for _, wrong := range linearizable(calls) {
		s.t.Errorf("no order explains the history of %s: %+v", wrong, *calls[wrong])
	}
	s.counts.Range(func(name, n any) bool {
		s.t.Logf("%6d %s", n.(*atomic.Int64).Load(), name)
		return true
	})
}
