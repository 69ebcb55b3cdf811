package fleet_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/toolhost/toolhost/fleet/engine"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// natsVariable has the test binary be a nats-server with this configuration file.
const natsVariable = "TOOLHOST_TEST_NATS"

func serveNATS(file string) {
	o, err := server.ProcessConfigFile(file)
	if err == nil {
		o.NoSigs = true
		var s *server.Server
		if s, err = server.NewServer(o); err == nil {
			s.Start()
			wait.Forever()
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// natsServer is one of a cluster, in a process of its own.
type natsServer struct {
	t       testing.TB
	file    string
	address string
	cmd     *exec.Cmd
}

// newCluster starts three servers that know the caller's key and those of workers.
func newCluster(t testing.TB, dir, caller string, workers map[string]string) (servers []*natsServer) {
	t.Helper()
	var clients, routes []string
	for range 3 {
		clients, routes = append(clients, freeAddress(t)), append(routes, freeAddress(t))
	}
	for i := range clients {
		text := engine.NATSConfig(caller, workers) + fmt.Sprintf(
			"server_name: n%d\nlisten: %q\ncluster: {name: soak, listen: %q, no_advertise: true, routes: [%s]}\n",
			i, clients[i], routes[i], "nats-route://"+strings.Join(routes, ", nats-route://"))
		s := &natsServer{t: t, file: filepath.Join(dir, fmt.Sprintf("n%d.conf", i)), address: clients[i]}
		if err := os.WriteFile(s.file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s.start()
		t.Cleanup(s.kill)
		servers = append(servers, s)
	}
	for _, s := range servers {
		wait.Until(t, "a nats-server listens", func() bool {
			conn, err := net.Dial("tcp", s.address)
			if err == nil {
				_ = conn.Close()
			}
			return err == nil
		})
	}
	return servers
}

// freeAddress is one that nobody listens on, as far as can be known.
func freeAddress(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

func (s *natsServer) start() {
	s.cmd = exec.Command(os.Args[0])
	s.cmd.Env = append(os.Environ(), natsVariable+"="+s.file)
	s.cmd.Stderr = s.t.Output()
	if err := s.cmd.Start(); err != nil {
		panic(err)
	}
}

func (s *natsServer) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// pause stops a process for a while.
func pause(p *os.Process, d time.Duration) {
	_ = p.Signal(syscall.SIGSTOP)
	time.Sleep(d)
	_ = p.Signal(syscall.SIGCONT)
}

// player starts the test binary as one of the soak's parties.
func player(t testing.TB, variable string, settings any) *exec.Cmd {
	raw, err := json.Marshal(settings)
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), variable+"="+string(raw))
	cmd.Stderr = t.Output()
	return cmd
}

// plainServer is a nats-server of this process that lets everybody in.
func plainServer(t testing.TB, o *server.Options) *server.Server {
	t.Helper()
	o.Host, o.Port, o.NoSigs, o.NoLog = "127.0.0.1", server.RANDOM_PORT, true, true
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(wait.Bound) {
		t.Fatal("the server does not listen")
	}
	return s
}

func dialPlain(t testing.TB, s *server.Server) *nats.Conn {
	t.Helper()
	conn, err := nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}
