package supervisor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/network/relay"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor/internal/call"
	"github.com/toolhost/toolhost/supervisor/internal/process"
)

// relayName is a relay's argv[0], by which RelayMain knows it.
const (
	relayName = "toolhost-relay"
	relayPath = "/.toolhost/bin/" + relayName // as it sees it
)

// relayOffered says that this program can be a relay: RelayMain was called.
var relayOffered atomic.Bool

// RelayMain lets the program serve calls with network grants. Call it first in main: in a
// process that was started as a host's relay it serves and does not return; otherwise it
// returns at once. Without it calls with network grants are refused.
func RelayMain() {
	relayOffered.Store(true)
	if len(os.Args) != 1 || os.Args[0] != relayName {
		return
	}
	if err := relay.Main(); err != nil {
		fmt.Fprintln(os.Stderr, relayName+":", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Bounds of a relay: its memory and tasks hold for all calls' connections
// together.
const (
	relayMemoryBytes = 512 << 20
	relayTasks       = 256
	relayFiles       = 32 << 10
	// relaySlack is how late its timers may be: the one of Go's runtime that looks
	// after threads every 20 µs takes time from those that copy.
	relaySlack = time.Millisecond
	// relayTime bounds its start as that of a tool is bounded, and answerTime an answer for which a call has no more
	// time than that: a relay that is later is ended, and its connections with it.
	relayTime  = 30 * time.Second
	answerTime = 700 * time.Millisecond
)

// relayHost is the one relay of a supervisor; it is started when it is needed,
// and again after its end.
type relayHost struct {
	turn    chan struct{} // has room for the one that looks for a relay, or starts it
	mu      sync.Mutex
	current *relayProcess
	over    bool
}

var _ relay.Handler = (*relayProcess)(nil)

// relayProcess is a living relay, or one that has ended.
type relayProcess struct {
	s       *Supervisor
	client  *relay.Client
	process *sandbox.Process
	group   *cgroup.Group
	// outside is the key of what it has read of this machine: when that changes,
	// new sessions get another relay.
	outside string

	mu       sync.Mutex
	sessions map[string]*netSession
	retired  bool
}

// errNoRelay names the remedy where the host program cannot be a relay.
var errNoRelay = errors.New("network grants are served by a process of the host's own program, which does not offer that: call supervisor.RelayMain first in its main")

// relayFor gives a session a living relay, which is not retired before it has ended.
func (s *Supervisor) relayFor(ctx context.Context, session *netSession) error {
	h := &s.relays
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done(): // a start takes longer than some calls have
		return fmt.Errorf("cannot wait for the network relay: %w", context.Cause(ctx))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return errClosed
	}
	outside := outsideKey()
	if r := h.current; r != nil && !closed(r.client.Gone()) && r.outside == outside {
		r.take(session)
		return nil
	}
	if r := h.current; r != nil {
		h.current = nil
		r.retire()
	}
	r, err := s.startRelay(ctx, outside)
	if err != nil {
		return fmt.Errorf("cannot start the network relay: %w", err)
	}
	h.current = r
	r.take(session)
	return nil
}

func (r *relayProcess) take(session *netSession) {
	r.mu.Lock()
	defer r.mu.Unlock()
	session.relay, r.sessions[session.id] = r, session
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

func (s *Supervisor) relayPlan() (*sandbox.Plan, error) {
	self, err := s.binaries.Find(ownProgram)
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
	return resolved.Plan(s.offered(), sandbox.Task{
		Programs:    []sandbox.Program{{Source: self.Stored, Target: relayPath}},
		MemoryBytes: relayMemoryBytes, OpenFiles: files, TimerSlack: relaySlack,
	})
}

func (s *Supervisor) startRelay(ctx context.Context, outside string) (*relayProcess, error) {
	plan, err := s.relayPlan() // which may copy the program, for as long as the disk takes
	if err != nil {
		return nil, err
	}
	defer plan.Close()
	ctx, cancel := context.WithTimeout(ctx, relayTime)
	defer cancel()
	ours, theirs, err := packetPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	group, err := s.groups.NewGroup("relay-"+rand.Text(), s.relayLimits())
	if err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	r := &relayProcess{s: s, group: group, outside: outside, sessions: map[string]*netSession{}}
	if r.process, err = r.launch(ctx, plan, theirs); err != nil {
		s.maker.Discard(group)
		return nil, errors.Join(err, ours.Close())
	}
	group.Lead(r.process.PID())
	_ = theirs.Close() // or its end would not be seen
	r.client = relay.NewClient(ours, r)
	s.tasks.Run("wait for the network relay", r.watch)
	if err = r.process.Started(ctx); err == nil {
		err = r.client.Hello(ctx, proxyOfHost())
	}
	if err != nil {
		_ = r.client.Close() // watch does the rest
		return nil, err
	}
	return r, nil
}

// relayLimits are those that can be enforced here.
func (s *Supervisor) relayLimits() (l cgroup.Limits) {
	if s.config.NoCgroup {
		return l
	}
	if s.Controller("memory") {
		l.MemoryBytes = relayMemoryBytes
	}
	if s.Controller("pids") {
		l.Pids = relayTasks
	}
	return l
}

func (r *relayProcess) launch(ctx context.Context, plan *sandbox.Plan, control *os.File) (*sandbox.Process, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer write.Close()
	p, err := r.s.host.Start(ctx, sandbox.Spec{
		Plan: plan, Path: relayPath, Args: []string{relayName}, Env: relayEnv, Dir: "/",
		Stdio: [3]*os.File{r.s.null, r.s.null, write}, Extra: []*os.File{control}, KillFile: r.group.KillFile, Into: r.group.Fork,
	})
	if err != nil {
		return nil, errors.Join(err, read.Close())
	}
	r.s.tasks.Run("log what the network relay says", func() { r.log(read) })
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
		r.s.config.Logger.Warn("the network relay has said", "text", string(said))
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

// packetPair makes a pair of sockets that keep messages apart (unix(7)).
func packetPair() (*net.UnixConn, *os.File, error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	for _, fd := range fds {
		for _, buffer := range []int{syscall.SO_SNDBUF, syscall.SO_RCVBUF} {
			_ = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, buffer, 512<<10)
		}
	}
	mine, theirs := os.NewFile(uintptr(fds[0]), "relay"), os.NewFile(uintptr(fds[1]), "relay")
	conn, err := net.FileConn(mine)
	_ = mine.Close()
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return conn.(*net.UnixConn), theirs, nil
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
func (r *relayProcess) served() []*netSession {
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
		r.s.config.Logger.Warn("cannot remove the group of the network relay", "error", err)
	}
}

// Asked has people asked on behalf of a call of the session.
func (r *relayProcess) Asked(a relay.Ask) {
	if session := r.find(a.Session); session != nil {
		q := session.comes(a)
		r.s.tasks.Run("ask about a connection", func() { session.asked(a, q) })
		return
	}
	r.s.tasks.Run("refuse a connection", func() {
		_, _ = r.client.Answer(a, relay.Denied, "the call is over")
	})
}

// Left has the calls go on that wait for an answer for no connection.
func (r *relayProcess) Left(a relay.Ask) {
	if session := r.find(a.Session); session != nil {
		session.left(a)
	}
}

// Passed ends the calls of the session, whose process has no network any more and so is for
// no further ones: the limit may have been passed while no call was there.
func (r *relayProcess) Passed(id, limit string) {
	if session := r.find(id); session != nil {
		r.s.tasks.Run("report a network limit", func() {
			session.at.Spend()
			for _, l := range session.at.Listeners() {
				if c, ok := l.(*call.Call); ok {
					c.PassedNetwork(limit)
				}
			}
		})
	}
}

// Reported takes what a call of the session came to.
func (r *relayProcess) Reported(id, name string, part *api.Network) {
	if session := r.find(id); session != nil {
		session.reported(name, part)
	}
}

func (r *relayProcess) find(id string) *netSession {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sessions[id]
}

// close ends the relay for good.
func (h *relayHost) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	if r := h.current; r != nil {
		_ = r.client.Close()
		<-r.process.Gone()
	}
}
