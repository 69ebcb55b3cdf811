package supervisor_test

import (
	"encoding/json"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/lab"
	"github.com/toolhost/toolhost/network"
	"github.com/toolhost/toolhost/supervisor"
)

func reaching(t *testing.T, l *lab.Lab, grants []string, lines ...string) supervisor.Request {
	t.Helper()
	policy := &supervisor.Policy{}
	for _, short := range grants {
		g, err := network.Parse(short)
		if err != nil {
			t.Fatal(err)
		}
		policy.Grants = append(policy.Grants, g)
	}
	text, err := json.Marshal(map[string]string{"text": strings.Join(lines, "\n")})
	if err != nil {
		t.Fatal(err)
	}
	r := request("reach", string(text))
	certificate, err := os.ReadFile(l.CA)
	if err != nil {
		t.Fatal(err)
	}
	// By its content: not every kernel that calls run on can map the owners of a folder.
	r.Sandbox, r.Env, r.Limits.Pids = policy, []string{"LAB_CA=" + string(certificate)}, 500
	return r
}

// lab0 are the grants of the lab's own address.
var lab0 = []string{"203.0.113.10", "203.0.113.10:2222"}

func with(grants ...string) []string { return append(slices.Clone(lab0), grants...) }

func said(r *api.Result) []string { return strings.Split(strings.TrimSpace(r.Text()), "\n") }

func flowOf(t *testing.T, r *api.Result, name string, port int) api.NetworkFlow {
	t.Helper()
	for _, f := range r.Network.Flows {
		if f.Name == name && f.Port == port {
			return f
		}
	}
	t.Fatalf("no flow of %s:%d in %+v", name, port, r.Network)
	return api.NetworkFlow{}
}

func wantRefused(t *testing.T, r *api.Result, name string, port int, why string) {
	t.Helper()
	for _, f := range r.Network.Refused {
		if f.Name == name && f.Port == port && strings.Contains(f.Why, why) && f.Count > 0 {
			return
		}
	}
	t.Errorf("no refusal of %s:%d for %q in %+v", name, port, why, r.Network.Refused)
}

func TestACallReachesWhatItWasGranted(t *testing.T) {
	l := lab.Run(t)
	if l == nil {
		return
	}
	host := newHost(t, supervisor.Config{})
	r := call(t, host, reaching(t, l, with("a.test", "*.wild.test:443", "a.test:2222"),
		"get https://a.test/x", "get http://a.test/y", "get https://y.z.wild.test/w", "echo a.test:2222 hello", "get http://203.0.113.10/addr", "look a.test", "listen 127.0.0.1:0"))
	wantStatus(t, r, api.StatusOK)
	got := said(r)
	for i, want := range []string{
		"GET a.test /x, 0 bytes", "GET a.test /y, 0 bytes", "GET y.z.wild.test /w, 0 bytes", "ready hello", "GET 203.0.113.10 /addr, 0 bytes", "198.18.1.1", "listens",
	} {
		if i >= len(got) || !strings.HasPrefix(got[i], want) {
			t.Errorf("line %d of %q, want %q", i, got, want)
		}
	}
	f := flowOf(t, r, "a.test", lab.EchoPort)
	if f.SentBytes != 5 || f.ReceivedBytes != 11 || f.Connections != 1 || f.Error != "" || f.Address != lab.Address {
		t.Errorf("%+v", f)
	}
	if f := flowOf(t, r, "a.test", 443); f.SentBytes == 0 || f.ReceivedBytes == 0 || f.Error != "" {
		t.Errorf("%+v", f)
	}
	if len(r.Network.Refused) != 0 || r.Network.Mode != "grants" || r.Network.Error != "" || !slices.Contains(r.Sandbox.Grants, "a.test:80,443,2222") {
		t.Errorf("%+v, %+v", r.Network, r.Sandbox)
	}
}

func TestACallReachesNothingElse(t *testing.T) {
	l := lab.Run(t)
	if l == nil {
		return
	}
	l.Set("evil.test", "127.0.0.1")
	l.Set("meta.test", "169.254.169.254")
	l.Set("mapped.test", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::")
	l.Set("missing.test")
	l.Move("move.test", lab.Address, "127.0.0.1")
	host := newHost(t, supervisor.Config{DenyNetworks: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}})
	l.Set("own.test", "198.51.100.7")
	if r := call(t, host, reaching(t, l, with("move.test"), "get http://move.test/")); !strings.HasPrefix(said(r)[0], "GET move.test /") {
		t.Errorf("before it moves: %q", said(r))
	}
	lines := []string{
		"get https://b.test/", "look other.example", "get https://evil.test/", "get https://meta.test/", "get https://mapped.test/", "look missing.test",
		"echo a.test:2222 x", "tls a.test:443 b.test", "get http://a.test/ b.test", "get http://8.8.8.8/", "get http://169.254.169.254/", "get http://127.0.0.1:80/", "get http://[::1]:80/",
		"get https://own.test/", "listen 198.18.1.1:443", "get http://10.1.2.3/", "get http://move.test/",
	}
	r := call(t, host, reaching(t, l, with("a.test", "evil.test", "meta.test", "mapped.test", "missing.test", "own.test", "move.test"), lines...))
	wantStatus(t, r, api.StatusOK)
	got := said(r)
	if len(got) != len(lines) {
		t.Fatalf("%d answers to %d lines: %q", len(got), len(lines), got)
	}
	for i, line := range got {
		if !strings.HasPrefix(line, "error: ") {
			t.Errorf("%s: %s", lines[i], line)
		}
	}
	wantRefused(t, r, "b.test", 0, "not granted")
	wantRefused(t, r, "other.example", 0, "not granted")
	wantRefused(t, r, "evil.test", 443, "loopback")
	wantRefused(t, r, "meta.test", 443, "metadata")
	wantRefused(t, r, "mapped.test", 443, "")
	wantRefused(t, r, "own.test", 443, "denied by the operator")
	wantRefused(t, r, "move.test", 80, "loopback")
	wantRefused(t, r, "a.test", 443, "TLS server name is b.test")
	wantRefused(t, r, "a.test", 80, "HTTP host is b.test")
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "the network refused b.test") || !strings.Contains(r.Warnings[0], "--net b.test") {
		t.Errorf("a model is told %q", r.Warnings)
	}
	if r.Network.Unreachable < 5 {
		t.Errorf("%d unreachable", r.Network.Unreachable)
	}
	if n := l.Queries("b.test") + l.Queries("other.example"); n != 0 {
		t.Errorf("%d queries for names that are not granted have left", n)
	}
}

// Addresses and networks of IPv6 are granted as those of IPv4 are, and names may
// lead to them.
func TestGrantsOfIPv6(t *testing.T) {
	l := lab.Run(t)
	if l == nil {
		return
	}
	for _, at := range []string{"[fd77::1]:8080", "[fd78::1]:8080", "[fd79::1]:8080"} {
		l.Listen(t, netip.MustParseAddrPort(at))
	}
	l.Set("six.test", "fd77::1")
	l.Set("other.test", "fd79::1")
	host := newHost(t, supervisor.Config{})
	grants := []string{"[fd77::1]:8080", "[fd78::/16]:8080", "six.test:8080", "other.test:8080"}
	r := call(t, host, reaching(t, l, grants, "get http://[fd77::1]:8080/a", "get http://[fd78::1]:8080/b", "get http://six.test:8080/c", "get http://other.test:8080/d", "get http://[fd79::1]:8080/e", "get http://[fd77::1]:8081/f"))
	wantStatus(t, r, api.StatusOK)
	for i, want := range []string{"GET [fd77::1]:8080 /a", "GET [fd78::1]:8080 /b", "GET six.test:8080 /c", "error: ", "error: ", "error: "} {
		if got := said(r)[i]; !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	wantRefused(t, r, "other.test", 8080, "private")
	if f := flowOf(t, r, "six.test", 8080); f.Address != "fd77::1" || f.Error != "" {
		t.Errorf("%+v", f)
	}
}

// A name that was good for one call is judged anew for the next: rebinding it is not a
// way in.
func TestANameThatMoves(t *testing.T) {
	l := lab.Run(t)
	if l == nil {
		return
	}
	l.Move("a.test", lab.Address, "127.0.0.1")
	host := newHost(t, supervisor.Config{})
	r := call(t, host, reaching(t, l, with("a.test:2222"), "echo a.test:2222 x"))
	if f := flowOf(t, r, "a.test", lab.EchoPort); f.Address != lab.Address || len(r.Network.Refused) != 0 || said(r)[0] != "ready x" {
		t.Errorf("%q, %+v", said(r), r.Network)
	}
	r = call(t, host, reaching(t, l, with("a.test:2222"), "echo a.test:2222 x"))
	wantRefused(t, r, "a.test", lab.EchoPort, "loopback")
	if !strings.HasPrefix(said(r)[0], "error: ") {
		t.Errorf("%q", said(r))
	}
}

// What a tool has sent before its end arrives, though nobody waits for it.
func TestWhatWasSentArrives(t *testing.T) {
	l := lab.Run(t)
	if l == nil {
		return
	}
	host := newHost(t, supervisor.Config{})
	text := strings.Repeat("x", 20_000) // the end of a call waits a quarter of a second for it
	for n := int64(1); n <= 5; n++ {
		r := call(t, host, reaching(t, l, with("a.test:2223", "203.0.113.10:2223"), "send a.test:2223 "+text))
		wantStatus(t, r, api.StatusOK)
		if f := flowOf(t, r, "a.test", lab.SinkPort); f.SentBytes != int64(len(text)) {
			t.Fatalf("%+v", f)
		}
		eventually(t, "what was sent has arrived", func() bool { return l.Sunk() == n*int64(len(text)) })
	}
}

// A killed call's connections end with it, and nothing holds its namespace.
func TestConnectionsEndWithTheCall(t *testing.T) {
	l := lab.Run(t)
	if l == nil {
		return
	}
	host := newHost(t, supervisor.Config{})
	wantStatus(t, call(t, host, reaching(t, l, with("a.test:2222"), "echo a.test:2222 x")), api.StatusOK) // the relay is there
	used, until := newSpaces(t), time.Second
	if slow() { // an emulated machine takes as long as that to start and connect
		until = 4 * time.Second
	}
	for range times(2, 5, 200) {
		r := reaching(t, l, with("a.test:2222"), "space", "flood a.test:2222")
		r.Timeouts, r.Grace = within(until), -1
		result := call(t, host, r)
		wantStatus(t, result, api.StatusTimeout)
		if f := flowOf(t, result, "a.test", lab.EchoPort); f.SentBytes == 0 || f.Error != "" {
			t.Errorf("%+v", f)
		}
		used.add(t, result)
	}
	eventually(t, "the namespaces of the calls are gone", func() bool { return used.left(t) == 0 })
}

func TestLimitsOfTheNetwork(t *testing.T) {
	l := lab.Run(t)
	if l == nil {
		return
	}
	host := newHost(t, supervisor.Config{})
	for name, set := range map[string]func(*network.Limits){
		"sent":             func(n *network.Limits) { n.SentBytes = 1 << 20 },
		"received":         func(n *network.Limits) { n.ReceivedBytes = 1 << 20 },
		"connectionsTotal": func(n *network.Limits) { n.TotalConnections = 1 },
	} {
		lines := []string{"echo a.test:2222 x", "get http://a.test/?bytes=5000000", "flood a.test:2222", "hang"}
		r := reaching(t, l, with("a.test", "a.test:2222"), lines...)
		set(&r.Limits.Network)
		result := call(t, host, r)
		wantStatus(t, result, api.StatusNetworkLimit)
		if string(result.Reason) != name || result.Kill.Cause != "network" || !strings.HasPrefix(result.Message, "[LIMIT]") {
			t.Errorf("%s: reason %s, cause %s, %s", name, result.Reason, result.Kill.Cause, result.Message)
		}
		if got := result.Limits.Network; got == nil || *got != *r.Limits.Network.Applied() || got.Connections != 64 || got.IdleMs != 600_000 {
			t.Errorf("%s: the result has the limits %+v", name, got)
		}
	}
	r := reaching(t, l, with("a.test:2222"), "echo a.test:2222 x")
	r.Limits.Network.Connections = -1
	wantStatus(t, call(t, host, r), api.StatusStartFailed)
}

// A call of a kept process has what happened meanwhile, and no more.
func TestTheNetworkOfAKeptProcess(t *testing.T) {
	l := lab.Run(t)
	if l == nil {
		return
	}
	host := newHost(t, supervisor.Config{})
	for n := range 3 {
		r := reaching(t, l, with("a.test:2222"), "echo a.test:2222 hello", "look no.example")
		r.Keep = &supervisor.Keep{}
		result := call(t, host, r)
		wantStatus(t, result, api.StatusOK)
		if f := flowOf(t, result, "a.test", lab.EchoPort); f.Connections != 1 || f.SentBytes != 5 || result.Network.Shared {
			t.Errorf("call %d: %+v", n, result.Network)
		}
		if result.Instance != map[bool]string{true: "fresh", false: "reused"}[n == 0] || len(result.Network.Refused) != 1 {
			t.Errorf("call %d: %s, %+v", n, result.Instance, result.Network.Refused)
		}
	}
}

func TestTheCeiling(t *testing.T) {
	l := lab.Run(t)
	if l == nil {
		return
	}
	ceiling, err := network.Parse("*.wild.test:443")
	if err != nil {
		t.Fatal(err)
	}
	host := newHost(t, supervisor.Config{Ceiling: supervisor.Ceiling{Network: "grants", Grants: []network.Grant{ceiling}, Source: "toolhost.yaml:3"}})
	wantStatus(t, call(t, host, reaching(t, l, []string{"x.wild.test:443"}, "look x.wild.test")), api.StatusOK)
	for _, grant := range []string{"a.test", "x.wild.test:80", "203.0.113.10:443"} {
		r := call(t, host, reaching(t, l, []string{grant}, "look a.test"))
		wantStatus(t, r, api.StatusStartFailed)
		if !strings.Contains(r.Message, "limits.network") {
			t.Errorf("%s: %s", grant, r.Message)
		}
	}
	r := reaching(t, l, nil, "look a.test")
	r.Sandbox.Network = "host"
	wantStatus(t, call(t, host, r), api.StatusStartFailed)
}

// A tier that cannot hold a call to its grants is refused.
func TestGrantsNeedASandbox(t *testing.T) {
	r := request("echo", `{}`)
	r.Sandbox = &supervisor.Policy{Tier: "none", Grants: []network.Grant{{Host: "a.test"}}}
	result := call(t, newHost(t, supervisor.Config{}), r)
	wantStatus(t, result, api.StatusStartFailed)
	if !strings.Contains(result.Message, "tier none") {
		t.Error(result.Message)
	}
}

// A relay that dies takes its connections with it, and nothing else: the result
// says so, and the next call has another.
func TestARelayThatDies(t *testing.T) {
	l := lab.Run(t)
	if l == nil {
		return
	}
	host := newHost(t, supervisor.Config{})
	c := startReached(t, host, l)
	signalRelay(t, relayPID(t), syscall.SIGKILL)
	c.Abort(api.ReasonUser)
	if n := c.Result().Network; !strings.HasPrefix(n.Error, "network_error") || c.Result().Status != api.StatusCancelled {
		t.Errorf("%s, %+v", c.Result().Status, n)
	}
	wantStatus(t, call(t, host, reaching(t, l, with("a.test:2222"), "echo a.test:2222 x")), api.StatusOK)
}

// A relay that is late, but not later than the call can wait, is not ended: that would cost
// all calls their connections.
func TestARelayThatIsLate(t *testing.T) {
	l := lab.Run(t)
	if l == nil {
		return
	}
	host := newHost(t, supervisor.Config{})
	c := startReached(t, host, l)
	pid := relayPID(t)
	signalRelay(t, pid, syscall.SIGSTOP)
	time.AfterFunc(time.Second, func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	c.Abort(api.ReasonUser)
	if f := flowOf(t, c.Result(), "a.test", lab.EchoPort); f.Connections != 1 {
		t.Errorf("%+v", c.Result().Network)
	}
	if now := relayPID(t); now != pid {
		t.Errorf("the relay is %d, not %d", now, pid)
	}
}

// A relay that does not answer is ended when the call must have its result.
func TestARelayThatIsStopped(t *testing.T) {
	l := lab.Run(t)
	if l == nil {
		return
	}
	host := newHost(t, supervisor.Config{})
	c := startReached(t, host, l)
	signalRelay(t, relayPID(t), syscall.SIGSTOP)
	c.Abort(api.ReasonUser)
	if n := c.Result().Network; !strings.HasPrefix(n.Error, "network_error: the network relay does not answer") {
		t.Errorf("%+v", n)
	}
	wantStatus(t, call(t, host, reaching(t, l, with("a.test:2222"), "echo a.test:2222 x")), api.StatusOK)
}

// startReached starts a call that has reached a destination, and stays.
func startReached(t *testing.T, host testHost, l *lab.Lab) testCall {
	t.Helper()
	r := reaching(t, l, with("a.test:2222"), "echo a.test:2222 x", "hang")
	r.Timeouts = within(20 * time.Second)
	events := make(chan api.Event, 100)
	r.Events = events
	c := host.Start(t.Context(), r)
	for e := range events {
		if e.Kind == api.EventOutput {
			break
		}
	}
	return c
}

func signalRelay(t *testing.T, pid int, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		t.Fatal(err)
	}
}
