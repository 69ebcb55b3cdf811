package fleet_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/toolhost/toolhost/fleet/fleettest"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// newCluster starts three servers that know the caller's key and those of workers.
func newCluster(t testing.TB, caller string, workers map[string]string) *fleettest.Servers {
	t.Helper()
	parties := []fleettest.Party{{Key: caller}}
	for name, key := range workers {
		parties = append(parties, fleettest.Party{Key: key, Worker: name})
	}
	servers, err := fleettest.Start(fleettest.Config{Number: 3, Parties: parties, Hidden: true}) // or clients go round their wires
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(servers.Close)
	return servers
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
