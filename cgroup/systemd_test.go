package cgroup

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/godbus/dbus/v5"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// startBus runs a private message bus and returns its address. Nothing is
// asked of the machine's own.
func startBus(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("dbus-daemon")
	need(t, "dbus-daemon (Debian package dbus)", err == nil, os.Getenv("CI") == "true" && !inVM())
	cmd := exec.Command(program, "--session", "--nofork", "--print-address", "--address=unix:path="+filepath.Join(t.TempDir(), "bus"))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatalf("dbus-daemon gave no address: %v", lines.Err())
	}
	return lines.Text()
}

// fakeManager is a systemd that only knows transient scopes.
type fakeManager struct {
	conn   *dbus.Conn
	result string // of the job; "" for none ever
	refuse *dbus.Error
	move   func(unit string, pid uint32)

	mu         sync.Mutex
	unit       string
	properties map[string]any
}

func serveManager(t *testing.T, address string, m *fakeManager) {
	t.Helper()
	conn, err := dbus.Connect(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	m.conn = conn
	if err := conn.Export(m, systemdPath, systemdManager); err != nil {
		t.Fatal(err)
	}
	if reply, err := conn.RequestName(systemdName, dbus.NameFlagDoNotQueue); err != nil || reply != dbus.RequestNameReplyPrimaryOwner {
		t.Fatalf("RequestName: %v, %v", reply, err)
	}
}

func (m *fakeManager) Subscribe() *dbus.Error { return nil }

// StartTransientUnit tells of a stranger's job first, and of ours before the
// caller can know its number.
func (m *fakeManager) StartTransientUnit(unit, mode string, properties []property, _ []auxUnit) (dbus.ObjectPath, *dbus.Error) {
	const job = dbus.ObjectPath(systemdPath + "/job/7")
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unit, m.properties = unit, map[string]any{"mode": mode}
	for _, p := range properties {
		m.properties[p.Name] = p.Value.Value()
	}
	if m.refuse != nil {
		return "", m.refuse
	}
	if m.move != nil {
		m.move(unit, m.properties["PIDs"].([]uint32)[0])
	}
	_ = m.conn.Emit(systemdPath, jobRemoved, uint32(6), dbus.ObjectPath(systemdPath+"/job/6"), "other.service", "failed")
	if m.result != "" {
		_ = m.conn.Emit(systemdPath, jobRemoved, uint32(7), job, unit, m.result)
	}
	return job, nil
}

func TestStartScope(t *testing.T) {
	address := startBus(t)
	m := &fakeManager{result: "done"}
	serveManager(t, address, m)
	if err := startScope(wait.Context(t), address, "toolhost-1-x.scope", 42); err != nil {
		t.Fatal(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	pids, _ := m.properties["PIDs"].([]uint32)
	if m.unit != "toolhost-1-x.scope" || m.properties["mode"] != "fail" || m.properties["Delegate"] != true || len(pids) != 1 || pids[0] != 42 {
		t.Errorf("asked for %s with %v", m.unit, m.properties)
	}
}

func TestStartScopeFails(t *testing.T) {
	denied := dbus.NewError("org.freedesktop.DBus.Error.AccessDenied", []any{"Permission denied"})
	cases := map[string]struct {
		manager *fakeManager
		want    string
	}{
		"job failed": {&fakeManager{result: "failed"}, `systemd's job ended as "failed"`},
		"denied":     {&fakeManager{refuse: denied}, "Permission denied"},
		"no manager": {nil, "org.freedesktop.systemd1"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			address := startBus(t)
			if c.manager != nil {
				serveManager(t, address, c.manager)
			}
			err := startScope(wait.Context(t), address, "toolhost-1-x.scope", 42)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// A manager that never ends its job doesn't hold us for ever.
func TestStartScopeGivesUp(t *testing.T) {
	address := startBus(t)
	asked := make(chan struct{})
	serveManager(t, address, &fakeManager{move: func(string, uint32) { close(asked) }})
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-asked
		cancel(cause)
	}()
	if err := startScope(ctx, address, "toolhost-1-x.scope", 42); !errors.Is(err, cause) {
		t.Errorf("error %v", err)
	}
}

func TestAwaitJobTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("no answer")
		ctx, cancel := context.WithTimeoutCause(t.Context(), scopeTimeout, cause)
		defer cancel()
		if err := awaitJob(ctx, make(chan *dbus.Signal), "/job/1"); !errors.Is(err, cause) {
			t.Errorf("error %v", err)
		}
	})
}

func TestStartScopeWithoutBus(t *testing.T) {
	err := startScope(wait.Context(t), "unix:path=/no/such/bus", "toolhost-1-x.scope", 42)
	if !errors.Is(err, syscall.ENOENT) {
		t.Errorf("error %v", err)
	}
}

func TestBusAddress(t *testing.T) {
	cases := []struct {
		p    placement
		env  map[string]string
		want string
	}{
		{placeAskSystem, nil, "unix:path=/run/dbus/system_bus_socket"},
		{placeAskSystem, map[string]string{"DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/x", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/y"}, "unix:path=/x"},
		{placeAskUser, map[string]string{"DBUS_SESSION_BUS_ADDRESS": "unix:path=/y", "XDG_RUNTIME_DIR": "/r"}, "unix:path=/y"},
		{placeAskUser, map[string]string{"XDG_RUNTIME_DIR": "/run/user/1000"}, "unix:path=/run/user/1000/bus"},
		{placeAskUser, map[string]string{"XDG_RUNTIME_DIR": "/r,x"}, "unix:path=/r%2cx/bus"},
	}
	for _, c := range cases {
		got, err := busAddress(c.p, func(k string) string { return c.env[k] })
		if err != nil || got != c.want {
			t.Errorf("busAddress(%v, %v) = %q, %v; want %q", c.p, c.env, got, err, c.want)
		}
	}
	_, err := busAddress(placeAskUser, func(string) string { return "" })
	checkUnavailable(t, err, "XDG_RUNTIME_DIR")
}

// The whole way: a child asks, the manager moves it, and it works there.
func TestAskForBase(t *testing.T) {
	needRoot(t)
	address := startBus(t)
	base, p := newBase(t)
	m := &fakeManager{result: "done", move: func(unit string, pid uint32) {
		if err := errors.Join(base.mkdir(unit, 0o755), base.write(unit+"/cgroup.procs", itoa(int64(pid)))); err != nil {
			t.Error(err)
		}
	}}
	serveManager(t, address, m)
	cmd := roleCommand("ask")
	cmd.Env = append(cmd.Env, "DBUS_SYSTEM_BUS_ADDRESS="+address)
	c := spawnCommand(t, nil, cmd)
	if got := c.line(); !strings.HasPrefix(got, p+"/toolhost-") || !strings.HasSuffix(got, ".scope") {
		t.Errorf("base %s", got)
	}
	_ = c.wait()
}

// A manager that says done but moves nobody is found out.
func TestAskForBaseUnmoved(t *testing.T) {
	address := startBus(t)
	serveManager(t, address, &fakeManager{result: "done"})
	cmd := roleCommand("ask")
	cmd.Env = append(cmd.Env, "DBUS_SYSTEM_BUS_ADDRESS="+address)
	c := spawnCommand(t, nil, cmd)
	if got := c.line(); !strings.HasPrefix(got, "cannot use cgroups: systemd scope") || !strings.Contains(got, "left us in") {
		t.Errorf("said %s", got)
	}
	_ = c.wait()
}

// fakeUnit is a unit's object: its properties by interface and name.
type fakeUnit map[string]map[string]any

func (u fakeUnit) Get(kind, name string) (dbus.Variant, *dbus.Error) {
	value, ok := u[kind][name]
	if !ok {
		return dbus.Variant{}, dbus.NewError("org.freedesktop.DBus.Error.UnknownProperty", nil)
	}
	return dbus.MakeVariant(value), nil
}

const fakeUnitPath = dbus.ObjectPath(systemdPath + "/unit/a")

// GetUnitByPID knows of process 42 alone.
func (m *fakeManager) GetUnitByPID(pid uint32) (dbus.ObjectPath, *dbus.Error) {
	if pid != 42 {
		return "", dbus.NewError("org.freedesktop.systemd1.NoUnitForPID", nil)
	}
	return fakeUnitPath, nil
}

func TestDelegatedUnit(t *testing.T) {
	service, scope := systemdName+".Service", systemdName+".Scope"
	for name, c := range map[string]struct {
		unit fakeUnit
		want string
	}{
		"a service":       {fakeUnit{service: {"Delegate": true, "ControlGroup": "/app.slice/a.service"}}, "/app.slice/a.service"},
		"a scope":         {fakeUnit{scope: {"Delegate": true, "ControlGroup": "/a.scope"}}, "/a.scope"},
		"not delegated":   {fakeUnit{service: {"Delegate": false, "ControlGroup": "/app.slice/a.service"}}, ""},
		"something other": {fakeUnit{systemdName + ".Slice": {"ControlGroup": "/a.slice"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			address := startBus(t)
			m := &fakeManager{}
			serveManager(t, address, m)
			if err := m.conn.Export(c.unit, fakeUnitPath, "org.freedesktop.DBus.Properties"); err != nil {
				t.Fatal(err)
			}
			if got, err := delegatedUnit(wait.Context(t), address, 42); err != nil || got != c.want {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
			if got, err := delegatedUnit(wait.Context(t), address, 43); err == nil {
				t.Errorf("a process that no unit has is in %q", got)
			}
		})
	}
}
