package supervisor_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/lab"
	"github.com/toolhost/toolhost/internal/testenv/stage"
	"github.com/toolhost/toolhost/supervisor"
)

// needs is what a relay has at this moment.
type needs struct {
	descriptors, bytes, threads int
}

func needsOf(t *testing.T, pid int) (n needs) {
	t.Helper()
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	open, err := os.ReadDir(filepath.Join(dir, "fd"))
	if err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		t.Fatal(err)
	}
	n.descriptors = len(open)
	for line := range strings.Lines(string(status)) {
		fields := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "VmRSS:"):
			n.bytes, _ = strconv.Atoi(fields[1])
			n.bytes <<= 10
		case strings.HasPrefix(line, "Threads:"):
			n.threads, _ = strconv.Atoi(fields[1])
		}
	}
	return n
}

// started is when a tool has said something.
func started(t *testing.T, events <-chan api.Event) {
	t.Helper()
	for {
		select {
		case e, open := <-events:
			if !open || e.Kind == api.EventOutput {
				return
			}
		case <-time.After(hangLimit):
			t.Fatal("the tool says nothing")
		}
	}
}

func TestAThousandIdleConnections(t *testing.T) {
	stage.Of(t, "networkload")
	l := lab.Run(t)
	if l == nil {
		return
	}
	const connections, mostBytes, mostDescriptors = 1000, 20 << 20, 6
	host := newHost(t, nothingWaits)
	wantStatus(t, call(t, host, reaching(t, l, with("a.test:2222"), "echo a.test:2222 x")), api.StatusOK)
	pid := relayPID(t)
	before := needsOf(t, pid)
	r := reaching(t, l, with("a.test:2222"), fmt.Sprintf("hold a.test:2222 %d", connections), "hang")
	r.Limits.Network.Connections, r.Limits.OpenFiles = connections, 2*connections
	events := make(chan api.Event, 100)
	r.Events = events
	c := host.Start(t.Context(), r)
	started(t, events)
	held := needsOf(t, pid)
	c.Abort(api.ReasonUser)
	if f := flowOf(t, c.Result(), "a.test", lab.EchoPort); f.Connections != connections || f.ReceivedBytes != 6*connections {
		t.Errorf("%+v", f)
	}
	t.Logf("%d connections: %d descriptors, %d KiB", connections, held.descriptors-before.descriptors, (held.bytes-before.bytes)>>10)
	if n := held.descriptors - before.descriptors; n > mostDescriptors*connections || n < connections {
		t.Errorf("%d descriptors", n)
	}
	if n := held.bytes - before.bytes; n > mostBytes {
		t.Errorf("%d bytes", n)
	}
	eventually(t, "the relay has closed everything", func() bool { return needsOf(t, pid).descriptors <= before.descriptors+8 })
}

func TestOneGigabyteEachWay(t *testing.T) {
	stage.Of(t, "networkload")
	l := lab.Run(t)
	if l == nil {
		return
	}
	const size = 1 << 30
	host := newHost(t, nothingWaits)
	grants := with("a.test:2223,80,443", "203.0.113.10:2223")
	r := call(t, host, reaching(t, l, grants, fmt.Sprintf("pour a.test:2223 %d", size), fmt.Sprintf("drink http://a.test/?bytes=%d", size)))
	wantStatus(t, r, api.StatusOK)
	if f := flowOf(t, r, "a.test", lab.SinkPort); f.SentBytes != size || f.ReceivedBytes != 0 || f.Error != "" {
		t.Errorf("%+v", f)
	}
	if f := flowOf(t, r, "a.test", 80); f.ReceivedBytes < size || f.ReceivedBytes > size+1000 || f.Error != "" {
		t.Errorf("%+v", f)
	}
	if want := fmt.Sprintf("drank %d", size); said(r)[1] != want {
		t.Errorf("%q", said(r))
	}
	eventually(t, "what was sent has arrived", func() bool { return l.Sunk() == size })
}

// Ten thousand connections as fast as a tool can make them: those beyond the rate
// wait, those beyond the limit are refused, other calls go on, and nothing is left.
func TestTenThousandConnections(t *testing.T) {
	stage.Of(t, "networkload")
	l := lab.Run(t)
	if l == nil {
		return
	}
	host := newHost(t, nothingWaits)
	greet := reaching(t, l, with("a.test:2222"), "echo a.test:2222 x")
	wantStatus(t, call(t, host, greet), api.StatusOK)
	pid := relayPID(t)
	before, used := needsOf(t, pid), newSpaces(t)
	r := reaching(t, l, with("a.test:2222"), "space", "storm a.test:2222 10000")
	r.Timeouts, r.Grace = within(20*time.Second), -1
	c := host.Start(t.Context(), r)
	for range 20 {
		wantStatus(t, call(t, host, greet), api.StatusOK)
	}
	f := flowOf(t, c.Result(), "a.test", lab.EchoPort)
	t.Logf("%d connections in %d ms", f.Connections, c.Result().Timing.ElapsedMs)
	if f.Connections > 200*21+200 {
		t.Errorf("%+v", f)
	}
	used.add(t, c.Result())
	eventually(t, "nothing is left", func() bool {
		return needsOf(t, pid).descriptors <= before.descriptors+8 && used.left(t) == 0
	})
}

// Calls that are killed while all their buffers are full leave nothing.
func TestCallsWithFullBuffersLeaveNothing(t *testing.T) {
	stage.Of(t, "networkload")
	l := lab.Run(t)
	if l == nil {
		return
	}
	calls := 10_000
	if set := os.Getenv("TOOLHOST_NETWORK_CALLS"); set != "" {
		n, err := strconv.Atoi(set)
		if err != nil {
			t.Fatal(err)
		}
		calls = n
	}
	host := newHost(t, nothingWaits)
	used := newSpaces(t)
	var full atomic.Int64 // calls that have had the time to fill their buffers
	flood := func(n int) {
		var left atomic.Int64
		left.Store(int64(n))
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for left.Add(-1) >= 0 {
					r := reaching(t, l, with("a.test:2222"), "space", "flood a.test:2222")
					r.Timeouts, r.Grace = within(300*time.Millisecond), -1
					got := call(t, host, r)
					n := got.Network
					if n == nil { // its time was over before it had processes
						n = &api.Network{}
					}
					if got.Status != api.StatusTimeout || n.Error != "" {
						t.Errorf("%s: %s, %+v", got.Status, got.Message, n)
					}
					if len(n.Flows) > 0 && n.Flows[0].SentBytes > 256<<10 {
						full.Add(1)
					}
					if got.Text() != "" {
						used.add(t, got)
					}
				}
			})
		}
		all.Wait()
	}
	flood(max(calls/10, 1)) // what is needed once
	pid := relayPID(t)
	before, own, groups := needsOf(t, pid), needsOf(t, os.Getpid()), groupsOf(t, host)
	began := time.Now()
	full.Store(0)
	flood(calls)
	after := needsOf(t, pid)
	t.Logf("%d calls, %d with full buffers, in %s: relay before %+v, after %+v; host %+v, %+v; %d cgroups, %d", calls, full.Load(), time.Since(began).Round(time.Second), before, after, own, needsOf(t, os.Getpid()), groups, groupsOf(t, host))
	if after.bytes > before.bytes+(16<<20) || after.threads > before.threads+8 {
		t.Errorf("before %+v, after %+v", before, after)
	}
	if full.Load() < int64(calls/2) {
		t.Errorf("only %d of %d calls had full buffers", full.Load(), calls)
	}
	eventually(t, "nothing is left", func() bool {
		return needsOf(t, pid).descriptors <= before.descriptors+8 && used.left(t) == 0 && needsOf(t, os.Getpid()).descriptors <= own.descriptors+8 && groupsOf(t, host) <= groups
	})
}

// groupsOf counts a host's cgroups, those in v1 hierarchies included.
func groupsOf(t *testing.T, host testHost) (n int) {
	t.Helper()
	own := filepath.Base(host.Host().Place)
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.Contains(path, "/"+own+"/") {
			n++
		}
		return nil // others' cgroups come and go meanwhile
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The relay is where its own load is bounded.
func TestTheRelayHasBoundsOfItsOwn(t *testing.T) {
	l := lab.Run(t)
	if l == nil {
		return
	}
	host := newHost(t, supervisor.Config{})
	wantStatus(t, call(t, host, reaching(t, l, with("a.test:2222"), "echo a.test:2222 x")), api.StatusOK)
	dir := filepath.Join("/proc", strconv.Itoa(relayPID(t)))
	read := func(name string) string {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	ours, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	if groups := read("cgroup"); !strings.Contains(groups, "-relay-") || groups == string(ours) {
		t.Errorf("the relay is in %q", groups)
	}
	status := read("status")
	for _, line := range []string{"NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t0000000000000000"} {
		if !strings.Contains(status, line) {
			t.Errorf("no %q in %s", line, status)
		}
	}
	if strings.Contains(status, "Uid:\t0\t") {
		t.Error("the relay is root")
	}
	var hard syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &hard); err != nil {
		t.Fatal(err)
	}
	if limits := read("limits"); !strings.Contains(limits, fmt.Sprintf("%-25s %d ", "Max open files", min(32<<10, hard.Max))) {
		t.Errorf("%s", limits)
	}
}

// relayPID is the one process of that name in this network namespace, which is the
// test's own.
func relayPID(t *testing.T) int {
	t.Helper()
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, path := range all {
		line, _ := os.ReadFile(path)
		where, _ := os.Readlink(filepath.Join(filepath.Dir(path), "ns/net"))
		if pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path))); string(line) == "toolhost-relay\x00" && where == own {
			found = append(found, pid)
		}
	}
	if len(found) != 1 {
		t.Fatalf("relays: %v", found)
	}
	return found[0]
}
