package supervisor_test

import (
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/lab"
	"github.com/toolhost/toolhost/supervisor"
)

// witness counts the connections that come to an address of the host's.
func witness(t *testing.T, at string, seen *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			seen.Add(1)
			_ = conn.Close()
		}
	}()
}

// No spelling of the host's own addresses leads to it: neither by the tool's own
// choice, nor by what a granted name leads to.
func TestTheHostsLoopbackByEverySpelling(t *testing.T) {
	l := lab.Run(t)
	if l == nil {
		return
	}
	var seen atomic.Int64
	witness(t, "127.0.0.1:8080", &seen)
	witness(t, "[::1]:8080", &seen)
	witness(t, lab.Address+":8080", &seen)
	var grants, lines []string
	spellings := []string{
		"127.0.0.1", "127.1.2.3", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", "::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::7f00:1",
		"2002:7f00:1::1", "2001:0:7f00:1::", "169.254.169.254", "fd00:ec2::254", "168.63.129.16", "100.64.0.1", "192.0.0.192", "10.0.0.1", "172.16.0.1",
		"192.168.0.1", "224.0.0.1", "255.255.255.255", "fe80::1", "fc00::1", lab.Address, "::ffff:" + lab.Address,
	}
	for i, addr := range spellings {
		name := fmt.Sprintf("n%d.test", i)
		l.Set(name, addr)
		grants, lines = append(grants, name+":8080"), append(lines, "echo "+name+":8080 x")
	}
	for _, to := range []string{
		"127.0.0.1", "127.1", "0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::1]", "localhost", "2130706433", "0x7f000001",
		"0177.0.0.1", lab.Address, "[::ffff:" + lab.Address + "]", "169.254.169.254", "[fd00:ec2::254]", "8.8.8.8", "198.18.0.1", "198.19.255.255",
	} {
		lines = append(lines, "echo "+to+":8080 x")
	}
	lines = append(lines, "reroute", "listen 198.18.1.1:8080", "listen 127.0.0.53:53", "udp 8.8.8.8:53")
	r := call(t, newHost(t, supervisor.Config{}), reaching(t, l, grants, lines...))
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
	for i, addr := range spellings {
		wantRefused(t, r, fmt.Sprintf("n%d.test", i), 8080, "the name leads to an address that is")
		if t.Failed() {
			t.Fatal(addr)
		}
	}
	if n := seen.Load(); n != 0 || len(r.Network.Flows) != 0 {
		t.Errorf("%d connections have come to the host, %+v", n, r.Network.Flows)
	}
}

// Names are looked up outside only where a grant names them in full, so labels
// carry nothing out.
func TestQueriesCarryNothingOut(t *testing.T) {
	l := lab.Run(t)
	if l == nil {
		return
	}
	host := newHost(t, supervisor.Config{})
	grants := []string{"a.test", "*.wild.test:443"}
	wantStatus(t, call(t, host, reaching(t, l, grants, "look a.test")), api.StatusOK) // the relay is there
	before := l.Queries("")
	var lines []string
	for i := range 20 {
		lines = append(lines, fmt.Sprintf("look secret%d.wild.test", i), fmt.Sprintf("look secret%d.a.test", i), fmt.Sprintf("look secret%d.example", i))
	}
	r := call(t, host, reaching(t, l, grants, lines...))
	wantStatus(t, r, api.StatusOK)
	if n := l.Queries("") - before; n != 0 {
		t.Errorf("%d queries have left", n)
	}
	if len(r.Network.Refused) != 40 {
		t.Errorf("%d refusals", len(r.Network.Refused))
	}
}
