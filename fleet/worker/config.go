// Package worker runs calls for the callers of a fleet, below a supervisor of its own.
//
// It holds every deadline itself, starts nothing that its caller does not know of, and
// ends the calls of a caller that it does not hear any more. What it cannot do, or its
// owner does not let it, it refuses before anything has started.
package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/fleet/internal/lease"
	"github.com/toolhost/toolhost/fleet/internal/link"
	"github.com/toolhost/toolhost/fleet/internal/portable"
	"github.com/toolhost/toolhost/fleet/internal/seal"
	"github.com/toolhost/toolhost/supervisor"
)

// DefaultLease is that of a Config without one.
const DefaultLease = 10 * time.Second

// Config of a worker.
type Config struct {
	// Name is the worker's in its fleet: small letters, digits and -, at most 63.
	Name string
	// URL is that of the fleet's engine, or several separated by commas; CA is a file of
	// certificates that the engine's must be signed by, empty for the system's.
	URL, CA string
	// KeyFile holds the worker's nkey.
	KeyFile string
	// Callers are the public nkeys of those whose calls are run. At least one.
	Callers []string
	// DrainBy are those of them that may drain the worker, and with it end it, by
	// themselves. Another one's drain concerns its own calls, until all have asked.
	DrainBy []string
	// Labels are what callers may ask for in a worker.
	Labels map[string]string
	// Ceilings bound what calls may have; beyond, they are refused.
	Ceilings Ceilings
	// Slots are how many calls run at once; zero is what the supervisor's Admission says. That
	// one's Running, if it is zero, is as many.
	Slots int
	// Lease is how long calls go on whose caller is not heard, 2 s to a minute; zero is
	// DefaultLease.
	Lease time.Duration
	// Dir holds the ledger. It must survive the worker's process, and need not survive the
	// machine. One worker uses it at a time.
	Dir string
	// Supervisor is that of the calls.
	Supervisor supervisor.Config
	// CommandTool makes tools of commands from what their CommandSpec's Source says; nil
	// refuses such calls.
	CommandTool func(source json.RawMessage) (*supervisor.CommandTool, error)
	// Adapter is the executable that MCP servers are run by, toolhost itself; empty refuses
	// such calls.
	Adapter string
	// Tracer makes spans of the calls that are made here; nil makes none.
	Tracer Tracer
	// Version is shown to callers.
	Version string
	// Logger is silent if nil.
	Logger hclog.Logger
}

// Ceilings are what a worker's owner lets calls have.
type Ceilings = portable.Ceilings

// Check says what is wrong with a configuration.
func (c Config) Check() error {
	if err := link.CheckName(c.Name); err != nil {
		return err
	}
	if _, err := link.CheckURL(c.URL); err != nil {
		return err
	}
	if len(c.Callers) == 0 {
		return errors.New("the worker trusts no caller: give --caller KEY, the public key of a daemon, which logs it as caller when it starts, as toolhost fleet keys prints it there")
	}
	for _, key := range c.Callers {
		if err := seal.CheckPublic(key); err != nil {
			return fmt.Errorf("caller: %w", err)
		}
	}
	for _, key := range c.DrainBy {
		if !slices.Contains(c.Callers, key) {
			return fmt.Errorf("%q may drain the worker, and is not a caller of its: give its key as a caller as well", key)
		}
	}
	if c.Lease != 0 && (c.Lease < lease.Min || c.Lease > lease.Max) {
		return fmt.Errorf("the lease of %s is out of range: take %s to %s", c.Lease, lease.Min, lease.Max)
	}
	if c.Slots < 0 {
		return fmt.Errorf("the worker cannot have %d slots", c.Slots)
	}
	for _, own := range []string{c.KeyFile, c.Dir} {
		if c.Ceilings.Shows(own) {
			return fmt.Errorf("calls may be granted %s, which is the worker's own: let them have other folders", own)
		}
	}
	return nil
}
