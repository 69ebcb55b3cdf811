package supervisor_test

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/lab"
	"github.com/toolhost/toolhost/internal/testenv/processes"
	"github.com/toolhost/toolhost/network"
	"github.com/toolhost/toolhost/supervisor"
)

// A grant says what its connections must begin with: with tls for its name on other
// ports, too, and with sni any for whatever name.
func TestWhatConnectionsMustBeginWith(t *testing.T) {
	l := lab.Run(t)
	if l == nil {
		return
	}
	lines := []string{
		"echo a.test:2222 SSH-2.0-x", "tls a.test:2222 b.test", "tls a.test:2222 a.test",
		"tls x.wild.test:443 b.test", "get http://x.wild.test/ b.test", "tls a.test:443 b.test", "get http://a.test/ b.test",
	}
	r := reaching(t, l, with("a.test"), lines...)
	r.Sandbox.Grants = append(
		r.Sandbox.Grants, network.Grant{Host: "a.test", Ports: []uint16{lab.EchoPort}, TLS: true}, network.Grant{Host: "x.wild.test", AnySNI: true},
	)
	result := call(t, newHost(t, supervisor.Config{}), r)
	wantStatus(t, result, api.StatusOK)
	got := said(result)
	for i, want := range []string{"error: ", "error: ", "error: ", "shaken", "GET b.test /", "error: ", "error: "} {
		if i >= len(got) || !strings.HasPrefix(got[i], want) {
			t.Errorf("%s: %q, want %q", lines[i], got, want)
		}
	}
	wantRefused(t, result, "a.test", lab.EchoPort, "it does not begin with a TLS ClientHello")
	wantRefused(t, result, "a.test", lab.EchoPort, "the TLS server name is b.test")
	wantRefused(t, result, "a.test", 443, "the TLS server name is b.test")
	wantRefused(t, result, "a.test", 80, "the HTTP host is b.test")
	if f := flowOf(t, result, "a.test", lab.EchoPort); f.Connections != 1 || f.SentBytes == 0 {
		t.Errorf("the hello for the name has not arrived: %+v", f)
	}
	if n := len(result.Network.Refused); n != 4 {
		t.Errorf("%+v", result.Network.Refused)
	}
}

// More connections than the limit are refused one by one, in this call alone.
func TestMoreConnectionsThanTheLimit(t *testing.T) {
	l := lab.Run(t)
	if l == nil {
		return
	}
	host := newHost(t, supervisor.Config{})
	const most = 64 // by default
	r := reaching(t, l, with("a.test:2222"), fmt.Sprintf("hold a.test:2222 %d", most), "echo a.test:2222 x", "held x", "hang")
	events := make(chan api.Event, 100)
	r.Events = events
	c := host.Start(t.Context(), r)
	for text := ""; !strings.Contains(text, "all answer"); {
		select {
		case e := <-events:
			if e.Content != nil {
				text += e.Content.Text
			}
		case <-c.Done():
			t.Fatalf("over too soon: %+v", c.Result())
		case <-time.After(hangLimit):
			t.Fatal("the tool says nothing")
		}
	}
	other := call(t, host, reaching(t, l, with("a.test:2222"), "echo a.test:2222 x"))
	if said(other)[0] != "ready x" {
		t.Errorf("another call: %q", said(other))
	}
	c.Abort(api.ReasonUser)
	result := c.Result()
	if got := said(result); len(got) != 3 || got[0] != "holds" || !strings.HasPrefix(got[1], "error: ") || got[2] != "all answer" {
		t.Errorf("%q", got)
	}
	wantRefused(t, result, "a.test", lab.EchoPort, "more than 64 connections at once")
	if f := flowOf(t, result, "a.test", lab.EchoPort); f.Connections != most {
		t.Errorf("%+v", f)
	}
}

// An address that does not answer costs a connection the time for it, and the result
// says so.
func TestAnAddressThatDoesNotAnswer(t *testing.T) {
	l := lab.Run(t)
	if l == nil {
		return
	}
	at := lab.Silent(t, lab.Address)
	r := reaching(t, l, []string{at.String(), fmt.Sprintf("a.test:%d", at.Port())}, fmt.Sprintf("echo a.test:%d x", at.Port()))
	r.Limits.Network.Dial = 200 * time.Millisecond
	result := call(t, newHost(t, supervisor.Config{}), r)
	wantStatus(t, result, api.StatusOK)
	if f := flowOf(t, result, "a.test", int(at.Port())); f.Error != "connecting timed out" || f.Address != lab.Address || !strings.HasPrefix(said(result)[0], "error: ") {
		t.Errorf("%+v, %q", f, said(result))
	}
}

// A call's network is shared where another call was in the process meanwhile, and only
// there.
func TestASharedNetwork(t *testing.T) {
	l := lab.Run(t)
	if l == nil {
		return
	}
	begun, goOn := make(chan struct{}), make(chan struct{})
	l.Site("slow.test", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		begun <- struct{}{}
		<-goOn
	}))
	host := newHost(t, supervisor.Config{})
	start := func(line string) testCall {
		r := reaching(t, l, with("a.test:2222", "slow.test:80"), line)
		r.Keep = &supervisor.Keep{Shared: true}
		return host.Start(t.Context(), r)
	}
	slow, quick := "get http://slow.test/", "echo a.test:2222 x"
	for _, instance := range []string{"fresh", "reused"} {
		first := start(slow)
		<-begun
		wantShared(t, "beside it", start(quick), true)
		goOn <- struct{}{}
		wantShared(t, instance, first, true)
		if got := first.Result().Instance; got != instance {
			t.Errorf("%s, want %s", got, instance)
		}
		wantShared(t, "alone", start(quick), false)
	}
}

func wantShared(t *testing.T, what string, c testCall, want bool) {
	t.Helper()
	r := c.Result()
	wantStatus(t, r, api.StatusOK)
	if r.Network.Shared != want {
		t.Errorf("%s: %+v", what, r.Network)
	}
}

// A ceiling is read as a policy is: its grants bound by themselves, and an unknown word is
// not taken for one.
func TestCeilingsOfAProgram(t *testing.T) {
	host := newHost(t, supervisor.Config{Ceiling: supervisor.Ceiling{Grants: []network.Grant{{Host: "Some.Test"}}}})
	for _, test := range []struct {
		policy supervisor.Policy
		want   api.Status
	}{
		{supervisor.Policy{Network: "host"}, api.StatusStartFailed},
		{supervisor.Policy{Grants: []network.Grant{{Host: "other.test"}}}, api.StatusStartFailed},
		{supervisor.Policy{Grants: []network.Grant{{Host: "some.test"}}}, api.StatusOK},
	} {
		r := request("echo", `{"text":"x"}`)
		r.Sandbox = &test.policy
		wantStatus(t, call(t, host, r), test.want)
	}
	for want, ceiling := range map[string]supervisor.Ceiling{
		`ceiling: network "None" is unknown: must be one of none, host, grants`: {Network: "None"},
		`ceiling: network "host" and grants contradict one another`:             {Network: "host", Grants: []network.Grant{{Host: "a.test"}}},
		`ceiling: network grant "a b"`:                                          {Grants: []network.Grant{{Host: "a b"}}},
	} {
		if host, err := supervisor.New(t.Context(), supervisor.Config{RuntimeDir: t.TempDir(), Ceiling: ceiling}); err == nil {
			_ = host.Close()
			t.Errorf("%+v: no error", ceiling)
		} else if !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Calls of a kept process that are alone there have each limit to themselves.
func TestTheLimitsOfAKeptProcess(t *testing.T) {
	l := lab.Run(t)
	if l == nil {
		return
	}
	host := newHost(t, supervisor.Config{})
	r := reaching(t, l, with("a.test:2222"), "echo a.test:2222 hello")
	r.Keep = &supervisor.Keep{}
	r.Limits.Network = network.Limits{TotalConnections: 1, SentBytes: 5, ReceivedBytes: 11} // as much as one needs
	for _, instance := range []string{"fresh", "reused", "reused"} {
		wantReached(t, call(t, host, r), instance)
	}
	more := reaching(t, l, with("a.test:2222"), "echo a.test:2222 hello", "echo a.test:2222 hello")
	r.Arguments = more.Arguments
	if got := call(t, host, r); got.Network.Limit != "connectionsTotal" || got.Instance != "reused" {
		t.Errorf("two connections of a %s process: %+v", got.Instance, got.Network)
	}
}

// What a kept process sends while no call is there fails none: it is for no further calls.
func TestALimitPassedBetweenCalls(t *testing.T) {
	l := lab.Run(t)
	if l == nil {
		return
	}
	host := newHost(t, supervisor.Config{})
	r := reaching(t, l, with("a.test:2222"), "echo a.test:2222 hello", "later a.test:2222")
	_, mark := marked(t, "reach", 1)
	r.Env, r.Keep = append(r.Env, mark), &supervisor.Keep{}
	r.Limits.Network = network.Limits{TotalConnections: 1}
	wantReached(t, call(t, host, r), api.InstanceFresh)
	for _, pid := range processes.WithEnvironment(mark) {
		_ = syscall.Kill(pid, syscall.SIGUSR1)
	}
	eventually(t, "the idle process has ended", func() bool { return host.Host().Kept == 0 })
	wantReached(t, call(t, host, r), api.InstanceFresh)
}
