// Package fleettest has tests use NATS servers in processes of their own, which can be
// killed, and has the suites of other packages run over a fleet. It is for tests only.
package fleettest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/toolhost/toolhost/fleet/internal/link"
)

// Party is one that servers let in, with the rights of its part. Those of different
// accounts do not hear each other.
type Party struct {
	Key     string // its public nkey
	Worker  string // its name; empty for a caller
	Account string
}

// settings are those of one server.
type settings struct {
	Parties []Party
	Number  int // of all servers
	Route   string
}

// serverVariable has the test binary be a server with these settings, in JSON.
const serverVariable = "TOOLHOST_TEST_NATS"

// Main comes first in TestMain: where the process is to be a server, it is one until its
// stdin ends.
func Main() {
	raw := os.Getenv(serverVariable)
	if raw == "" {
		return
	}
	if err := serve(raw); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serve(raw string) error {
	var s settings
	if err := json.Unmarshal([]byte(raw), &s); err != nil {
		return err
	}
	o, err := s.options()
	if err != nil {
		return err
	}
	running, err := server.NewServer(o)
	if err != nil {
		return err
	}
	running.Start()
	if !running.ReadyForConnections(time.Minute) {
		return fmt.Errorf("the server does not listen")
	}
	fmt.Println("nats://" + running.Addr().String())
	if s.Number > 1 {
		fmt.Println("nats://" + running.ClusterAddr().String())
		for !meshed(running, s.Number-1) {
			time.Sleep(5 * time.Millisecond)
		}
	}
	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// meshed says whether a server has routes to so many others.
func meshed(s *server.Server, others int) bool {
	routes, err := s.Routez(nil)
	if err != nil {
		return false
	}
	names := map[string]bool{}
	for _, r := range routes.Routes {
		names[r.RemoteName] = true
	}
	return len(names) >= others
}

// options are as those that toolhost fleet nats-config writes.
func (s settings) options() (*server.Options, error) {
	o := &server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, PingInterval: 2 * time.Second, MaxPingsOut: 2,
	}
	accounts := map[string]*server.Account{}
	for _, p := range s.Parties {
		rights := link.CallerRights(p.Key)
		if p.Worker != "" {
			rights = link.WorkerRights(p.Worker)
		}
		if accounts[p.Account] == nil {
			accounts[p.Account] = server.NewAccount("a" + p.Account)
			o.Accounts = append(o.Accounts, accounts[p.Account])
		}
		o.Nkeys = append(o.Nkeys, &server.NkeyUser{Nkey: p.Key, Account: accounts[p.Account], Permissions: &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: rights.Publish},
			Subscribe: &server.SubjectPermission{Allow: rights.Subscribe},
		}})
	}
	if s.Number == 1 {
		return o, nil
	}
	o.Cluster = server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: server.RANDOM_PORT}
	if s.Route != "" {
		route, err := url.Parse(s.Route)
		if err != nil {
			return nil, err
		}
		o.Routes = []*url.URL{route}
	}
	return o, nil
}

// Servers are several that are one cluster.
type Servers struct {
	// URLs are those that clients connect to.
	URLs      []string
	processes []*exec.Cmd
	stdins    []io.Closer
}

// Start starts so many servers.
func Start(number int, parties []Party) (*Servers, error) {
	s, route := &Servers{}, ""
	var outs []*bufio.Reader
	for range number {
		out, err := s.start(settings{Parties: parties, Number: number, Route: route})
		if err != nil {
			s.Close()
			return nil, err
		}
		outs = append(outs, out)
		s.URLs = append(s.URLs, line(out))
		if number > 1 {
			if seed := line(out); route == "" {
				route = seed
			}
		}
	}
	for i, out := range outs {
		if got := line(out); got != "ready" {
			s.Close()
			return nil, fmt.Errorf("server %d says %q, and not that it is ready", i, got)
		}
	}
	return s, nil
}

func line(r *bufio.Reader) string {
	text, _ := r.ReadString('\n') // what is missing is no address
	return strings.TrimSpace(text)
}

func (s *Servers) start(of settings) (*bufio.Reader, error) {
	raw, err := json.Marshal(of)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), serverVariable+"="+string(raw)), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s.processes, s.stdins = append(s.processes, cmd), append(s.stdins, in)
	return bufio.NewReader(out), nil
}

// Kill kills a server, as kill -9 does.
func (s *Servers) Kill(i int) {
	_ = s.processes[i].Process.Kill()
	_ = s.processes[i].Wait()
}

// Close ends all.
func (s *Servers) Close() {
	for i := range s.processes {
		_ = s.stdins[i].Close()
		s.Kill(i)
	}
}
