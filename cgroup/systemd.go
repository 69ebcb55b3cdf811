package cgroup

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/godbus/dbus/v5"
)

// scopeTimeout bounds the whole conversation with systemd.
const scopeTimeout = 5 * time.Second

const (
	systemdName    = "org.freedesktop.systemd1"
	systemdPath    = "/org/freedesktop/systemd1"
	systemdManager = "org.freedesktop.systemd1.Manager"
	jobRemoved     = systemdManager + ".JobRemoved"
)

func scopeName() string { return fmt.Sprintf("toolhost-%d-%s.scope", os.Getpid(), randomHex()) }

func randomHex() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// busAddress finds the bus of the manager to ask. An address is taken from the
// environment only: nothing is started on demand.
func busAddress(p placement, getenv func(string) string) (string, error) {
	if p == placeAskSystem {
		return cmp.Or(getenv("DBUS_SYSTEM_BUS_ADDRESS"), "unix:path=/run/dbus/system_bus_socket"), nil
	}
	if a := getenv("DBUS_SESSION_BUS_ADDRESS"); a != "" {
		return a, nil
	}
	if dir := getenv("XDG_RUNTIME_DIR"); dir != "" {
		return "unix:path=" + dbus.EscapeBusAddressValue(dir+"/bus"), nil
	}
	return "", &UnavailableError{"user bus", "XDG_RUNTIME_DIR is not set", PlaceRemedy(), nil}
}

// isUnitOfOurs tells whether own is the cgroup of a unit with Delegate=yes that
// carries no mark of it: managers of users leave none (systemd 252). Who cannot
// be asked has not delegated.
func isUnitOfOurs(ctx context.Context, p placement, own string) bool {
	address, err := busAddress(p, os.Getenv)
	if err != nil {
		return false
	}
	delegated, err := delegatedUnit(ctx, address, os.Getpid())
	return err == nil && delegated == own
}

// delegatedUnit asks the manager on the bus for the unit of a process; the
// answer is the unit's cgroup, or empty if it is not delegated.
func delegatedUnit(ctx context.Context, address string, pid int) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, scopeTimeout, errors.New("systemd did not answer in time"))
	defer cancel()
	conn, err := dbus.Connect(address, dbus.WithContext(ctx))
	if err != nil {
		return "", fmt.Errorf("cannot connect to bus %s: %w", address, causeOf(ctx, err))
	}
	defer conn.Close()
	var unit dbus.ObjectPath
	manager := conn.Object(systemdName, systemdPath)
	if err := manager.CallWithContext(ctx, systemdManager+".GetUnitByPID", 0, uint32(pid)).Store(&unit); err != nil {
		return "", fmt.Errorf("cannot find the unit of process %d: %w", pid, causeOf(ctx, err))
	}
	for _, kind := range []string{systemdName + ".Service", systemdName + ".Scope"} {
		var delegated, path dbus.Variant
		get := func(name string, into *dbus.Variant) error {
			return conn.Object(systemdName, unit).CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, kind, name).Store(into)
		}
		if get("Delegate", &delegated) != nil || delegated.Value() != true || get("ControlGroup", &path) != nil {
			continue
		}
		group, _ := path.Value().(string)
		return group, nil
	}
	return "", nil
}

// startScope asks the manager on the bus for a transient delegated scope with
// pid in it and returns when it is there. Source: org.freedesktop.systemd1(5).
func startScope(ctx context.Context, address, unit string, pid int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, scopeTimeout, errors.New("systemd did not answer in time"))
	defer cancel()
	conn, err := dbus.Connect(address, dbus.WithContext(ctx))
	if err != nil {
		return fmt.Errorf("cannot connect to bus %s: %w", address, causeOf(ctx, err))
	}
	defer conn.Close()
	if err := conn.AddMatchSignalContext(ctx, dbus.WithMatchSender(systemdName), dbus.WithMatchObjectPath(systemdPath), dbus.WithMatchInterface(systemdManager), dbus.WithMatchMember("JobRemoved")); err != nil {
		return fmt.Errorf("cannot watch systemd's jobs: %w", causeOf(ctx, err))
	}
	signals := make(chan *dbus.Signal, 64) // the match is set before the call: no job is missed
	conn.Signal(signals)
	manager := conn.Object(systemdName, systemdPath)
	// Signals of jobs go to subscribers; an older manager refuses a second one.
	_ = manager.CallWithContext(ctx, systemdManager+".Subscribe", 0).Err
	var job dbus.ObjectPath
	err = manager.CallWithContext(ctx, systemdManager+".StartTransientUnit", 0,
		unit, "fail", scopeProperties(pid), []auxUnit{}).Store(&job)
	if err != nil {
		return fmt.Errorf("cannot start scope: %w", causeOf(ctx, err))
	}
	return awaitJob(ctx, signals, job)
}

type property struct {
	Name  string
	Value dbus.Variant
}

type auxUnit struct {
	Name       string
	Properties []property
}

func scopeProperties(pid int) []property {
	return []property{
		{"Description", dbus.MakeVariant("toolhost's tools")},
		{"PIDs", dbus.MakeVariant([]uint32{uint32(pid)})},
		{"Delegate", dbus.MakeVariant(true)},
		{"CollectMode", dbus.MakeVariant("inactive-or-failed")},
	}
}

func awaitJob(ctx context.Context, signals <-chan *dbus.Signal, job dbus.ObjectPath) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case s, open := <-signals:
			if !open {
				return errors.New("the bus closed the connection")
			}
			if result, ours := jobResult(s, job); ours && result != "done" {
				return fmt.Errorf("systemd's job ended as %q", result)
			} else if ours {
				return nil
			}
		}
	}
}

// jobResult reads a JobRemoved(u id, o job, s unit, s result).
func jobResult(s *dbus.Signal, job dbus.ObjectPath) (string, bool) {
	if s.Name != jobRemoved || len(s.Body) != 4 || s.Body[1] != job {
		return "", false
	}
	result, ok := s.Body[3].(string)
	return result, ok
}

func causeOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
