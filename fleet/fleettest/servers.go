// Package fleettest has tests use NATS servers in processes of their own, which can be
// killed, and has the suites of other packages run over a fleet. It is for tests only.
package fleettest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strconv"
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

// Config is what servers are started with.
type Config struct {
	Number  int
	Parties []Party
	// Hidden has clients hear of no other servers than those that they were given.
	Hidden bool
}

// settings are those of one server.
type settings struct {
	Config
	Listen, Route string   // its addresses; empty for any
	Routes        []string // URLs of other servers
}

const scheme = "nats://"

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
	fmt.Println(scheme + running.Addr().String())
	if s.Number > 1 {
		fmt.Println(scheme + running.ClusterAddr().String())
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
func (s settings) options() (o *server.Options, err error) {
	o = &server.Options{NoSigs: true, NoLog: true, PingInterval: 2 * time.Second, MaxPingsOut: 2}
	if o.Host, o.Port, err = address(s.Listen); err != nil {
		return nil, err
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
	o.Cluster = server.ClusterOpts{Name: "test", NoAdvertise: s.Hidden}
	if o.Cluster.Host, o.Cluster.Port, err = address(s.Route); err != nil {
		return nil, err
	}
	for _, text := range s.Routes {
		route, err := url.Parse(text)
		if err != nil {
			return nil, err
		}
		o.Routes = append(o.Routes, route)
	}
	return o, nil
}

// address is one to listen at, on any port without one.
func address(of string) (host string, port int, err error) {
	if of == "" {
		return "127.0.0.1", server.RANDOM_PORT, nil
	}
	host, text, err := net.SplitHostPort(of)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	return host, port, err
}

// Server is one in a process of its own.
type Server struct {
	// URL is what clients connect to.
	URL   string
	route string // what other servers connect to
	all   *Servers
	cmd   *exec.Cmd
	stdin io.Closer
}

// Servers are several that are one cluster.
type Servers struct {
	config Config
	List   []*Server
}

// Start starts servers, and waits until they know each other.
func Start(c Config) (*Servers, error) {
	s := &Servers{config: c}
	var outs []*bufio.Reader
	for range c.Number {
		out, err := s.add()
		if err != nil {
			s.Close()
			return nil, err
		}
		outs = append(outs, out)
	}
	for i, out := range outs {
		if got := line(out); got != "ready" {
			s.Close()
			return nil, fmt.Errorf("server %d says %q, and not that it is ready", i, got)
		}
	}
	return s, nil
}

// add starts one more.
func (s *Servers) add() (out *bufio.Reader, err error) {
	one := &Server{all: s}
	if out, err = one.start(); err != nil {
		return nil, err
	}
	s.List = append(s.List, one)
	one.URL = line(out)
	if s.config.Number > 1 {
		one.route = line(out)
	}
	return out, nil
}

// routes are those to all servers but one.
func (s *Servers) routes(but *Server) (list []string) {
	for _, other := range s.List {
		if other != but {
			list = append(list, other.route)
		}
	}
	return list
}

// URLs are what clients connect to.
func (s *Servers) URLs() (list []string) {
	for _, one := range s.List {
		list = append(list, one.URL)
	}
	return list
}

func line(r *bufio.Reader) string {
	text, _ := r.ReadString('\n') // what is missing is not an address
	return strings.TrimSpace(text)
}

// start has it listen where it did before, if it did.
func (s *Server) start() (out *bufio.Reader, err error) {
	raw, err := json.Marshal(settings{s.all.config, strings.TrimPrefix(s.URL, scheme), strings.TrimPrefix(s.route, scheme), s.all.routes(s)})
	if err != nil {
		return nil, err
	}
	s.cmd = exec.Command(os.Args[0])
	s.cmd.Env, s.cmd.Stderr = append(os.Environ(), serverVariable+"="+string(raw)), os.Stderr
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	from, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return bufio.NewReader(from), s.cmd.Start()
}

// Process is its process.
func (s *Server) Process() *os.Process { return s.cmd.Process }

// Kill kills it, as kill -9 does.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// Restart starts one that was killed. It does not wait until others know it.
func (s *Server) Restart() error {
	_, err := s.start()
	return err
}

// Close ends all.
func (s *Servers) Close() {
	for _, one := range s.List {
		_ = one.stdin.Close()
		one.Kill()
	}
}
