package egress

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/internal/seqpacket"
	"github.com/toolhost/toolhost/network/relay"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor/internal/process"
)

// relayName is a relay's argv[0], by which Main knows it.
const (
	relayName = "toolhost-relay"
	relayPath = "/.toolhost/bin/" + relayName // as it sees it
)

// Bounds of a relay: its memory and tasks hold for all calls' connections
// together.
const (
	relayMemoryBytes = 512 << 20
	relayTasks       = 256
	relayFiles       = 32 << 10
	relayBuffer      = 512 << 10 // of its socket
	// relaySlack is how late its timers may be: the one of Go's runtime that looks
	// after threads every 20 µs takes time from those that copy.
	relaySlack = time.Millisecond
	// relayTime bounds its start as that of a tool is bounded, and answerTime an answer for which a call has no more
	// time than that: a relay that is later is ended, and its connections with it.
	relayTime  = 30 * time.Second
	answerTime = 700 * time.Millisecond
)

var _ relay.Handler = (*relayProcess)(nil)

// relayProcess is a living relay, or one that has ended.
type relayProcess struct {
	maker   *process.Maker
	client  *relay.Client
	process *sandbox.Process
	group   *cgroup.Group
	// outside is the key of what it has read of this machine: when that changes,
	// new sessions get another relay.
	outside string

	mu       sync.Mutex
	sessions map[string]*session
	retired  bool
}

func (r *relayProcess) take(n *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n.relay, r.sessions[n.id] = r, n
}

// outsideKey is the same for as long as a relay's view of the machine's resolver
// holds: files that are replaced are still the old ones in its mounts.
func outsideKey() string {
	return sandbox.PathKey("/etc/resolv.conf") + sandbox.PathKey("/etc/hosts")
}

// ownProgram is the host's own program as it runs: the file at its path may be another one
// by now, or gone.
const ownProgram = "/proc/self/exe"

// relayPolicy is the sandbox of a relay: a user of its own where there can be one,
// nothing to read or write, and the host's network.
var relayPolicy = sandbox.Policy{Network: sandbox.NetworkHost, Allow: []string{sandbox.SharedUID, sandbox.FeatureLandlockScope}}

func (h *Relays) plan() (*sandbox.Plan, error) {
	self, err := h.binaries.Find(ownProgram)
	if err != nil {
		return nil, fmt.Errorf("cannot copy the host's own program: %w", err)
	}
	resolved, err := relayPolicy.Resolve()
	if err != nil {
		return nil, err
	}
	files := int64(relayFiles)
	var hard syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &hard) == nil && hard.Max < relayFiles {
		files = int64(hard.Max)
	}
	return resolved.Plan(h.features(), sandbox.Task{
		Programs:    []sandbox.Program{{Source: self.Stored, Target: relayPath}},
		MemoryBytes: relayMemoryBytes, OpenFiles: files, TimerSlack: relaySlack,
	})
}

func (h *Relays) start(ctx context.Context, outside string) (*relayProcess, error) {
	plan, err := h.plan() // which may copy the program, for as long as the disk takes
	if err != nil {
		return nil, err
	}
	defer plan.Close()
	ctx, cancel := context.WithTimeout(ctx, relayTime)
	defer cancel()
	ours, theirs, err := seqpacket.Pair(relayName, relayBuffer)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	defer theirs.Close()
	group, err := h.maker.Groups.NewGroup("relay-"+rand.Text(), h.limits())
	if err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	r := &relayProcess{maker: h.maker, group: group, outside: outside, sessions: map[string]*session{}}
	if r.process, err = r.launch(ctx, plan, theirs); err != nil {
		h.maker.Discard(group)
		return nil, errors.Join(err, ours.Close())
	}
	group.Lead(r.process.PID())
	_ = theirs.Close() // or its end would not be seen
	r.client = relay.NewClient(ours, r)
	h.maker.Tasks.Run("wait for the network relay", r.watch)
	if err = r.process.Started(ctx); err == nil {
		err = r.client.Hello(ctx, proxyOfHost())
	}
	if err != nil {
		_ = r.client.Close() // watch does the rest
		return nil, err
	}
	return r, nil
}

// limits are those that can be enforced here.
func (h *Relays) limits() (l cgroup.Limits) {
	for _, controller := range h.maker.Groups.Controllers() {
		switch controller {
		case "memory":
			l.MemoryBytes = relayMemoryBytes
		case "pids":
			l.Pids = relayTasks
		}
	}
	return l
}

func (r *relayProcess) launch(ctx context.Context, plan *sandbox.Plan, control *os.File) (*sandbox.Process, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer write.Close()
	p, err := r.maker.Host.Start(ctx, sandbox.Spec{
		Plan: plan, Path: relayPath, Args: []string{relayName}, Env: relayEnv, Dir: "/",
		Stdio: [3]*os.File{null, null, write}, Extra: []*os.File{control}, KillFile: r.group.KillFile, Into: r.group.Fork,
	})
	if err != nil {
		return nil, errors.Join(err, read.Close())
	}
	r.maker.Tasks.Run("log what the network relay says", func() { r.log(read) })
	return p, nil
}

// relayEnv keeps its heap small, for its buffers are the kernel's, and its threads
// few: it waits for sockets, and connections that are handed from one processor to
// another are slower. The rest is the calls'.
var relayEnv = []string{"GOMEMLIMIT=256MiB", "GOGC=50", "GOTRACEBACK=single", "GOMAXPROCS=" + strconv.Itoa(max(1, runtime.NumCPU()/4))}

// maxRelayWords bounds what is logged of a relay.
const maxRelayWords = 16 << 10

func (r *relayProcess) log(from io.ReadCloser) {
	said, _ := io.ReadAll(io.LimitReader(from, maxRelayWords))
	if len(said) > 0 {
		r.maker.Logger.Warn("the network relay has said", "text", string(said))
	}
	_, _ = io.Copy(io.Discard, from)
	_ = from.Close()
}

// proxyOfHost is the outbound proxy by the host's own environment.
func proxyOfHost() *httpproxy.Config {
	c := httpproxy.FromEnvironment()
	if c.HTTPProxy == "" && c.HTTPSProxy == "" {
		return nil
	}
	return c
}

// watch frees the relay when it has ended. The processes that it has served have no
// network any more.
func (r *relayProcess) watch() {
	select {
	case <-r.process.Gone():
	case <-r.client.Gone():
	}
	_ = r.client.Close()
	<-r.client.Gone() // and all that it has said was heard
	for _, n := range r.served() {
		n.leftAll()
		n.at.Spend()
	}
	r.end()
}

// served are the sessions that have not ended.
func (r *relayProcess) served() []*session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.sessions))
}

// retire ends the relay when its last session has ended. What it serves keeps its view of
// this machine, and so is for no further calls.
func (r *relayProcess) retire() {
	for _, n := range r.served() {
		n.at.Spend()
	}
	r.mu.Lock()
	r.retired = true
	unused := len(r.sessions) == 0
	r.mu.Unlock()
	if unused {
		_ = r.client.Close()
	}
}

// end kills what lives of the relay and frees it.
func (r *relayProcess) end() {
	_ = r.group.Kill()
	_ = r.process.Kill()
	ctx, cancel := context.WithTimeout(context.Background(), process.KillTime)
	defer cancel()
	select {
	case <-r.process.Gone():
		r.process.Release()
	case <-ctx.Done():
		r.process.Abandon()
	}
	if err := errors.Join(r.group.WaitEmpty(ctx), r.group.Remove()); err != nil {
		r.maker.Logger.Warn("cannot remove the group of the network relay", "error", err)
	}
}

// Asked has people asked on behalf of a session's call.
func (r *relayProcess) Asked(a relay.Ask) {
	if n := r.find(a.Session); n != nil {
		q := n.comes(a)
		r.maker.Tasks.Run("ask about a connection", func() { n.asked(a, q) })
		return
	}
	r.maker.Tasks.Run("refuse a connection", func() {
		_, _ = r.client.Answer(a, relay.Denied, "the call is over")
	})
}

// Left has the calls go on that wait for an answer for no connection.
func (r *relayProcess) Left(a relay.Ask) {
	if n := r.find(a.Session); n != nil {
		n.left(a)
	}
}

// Passed ends the calls of the session, whose process has no network any more and so is for
// no further ones: the limit may have been passed while no call was there.
func (r *relayProcess) Passed(id, limit string) {
	if n := r.find(id); n != nil {
		r.maker.Tasks.Run("report a network limit", func() {
			n.at.Spend()
			for _, l := range n.at.Listeners() {
				l.PassedNetwork(limit)
			}
		})
	}
}

// Reported takes what a call of the session came to.
func (r *relayProcess) Reported(id, name string, part *api.Network) {
	if n := r.find(id); n != nil {
		n.reported(name, part)
	}
}

func (r *relayProcess) find(id string) *session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sessions[id]
}
