package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/access"
	"github.com/toolhost/toolhost/internal/access/tokens"
	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/internal/serve/httpapi"
	"github.com/toolhost/toolhost/internal/serve/mcpserver"
	"github.com/toolhost/toolhost/internal/serve/telemetry"
	"github.com/toolhost/toolhost/internal/tools/config"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// Options of Run. Loaded, Load, Machine, Adapter, Signals and Reloads must be set.
type Options struct {
	// Loaded is the configuration to begin with; Load reads it again.
	Loaded *config.Loaded
	Load   func() (*config.Loaded, error)
	// Machine is where secrets are read.
	Machine config.Machine
	// State is the folder of the journal, of tools' data and of the token; empty
	// means none. Retention bounds what the journal keeps.
	State     string
	Retention journal.Retention
	// Adapter is the toolhost binary, which adapts MCP servers.
	Adapter string
	// NoCgroup is supervisor.Config's.
	NoCgroup bool
	// Pages are the web console; nil means none.
	Pages   http.Handler
	Version string
	// CheckFleet finds tools whose calls no worker could make, though they must; nil finds
	// none.
	CheckFleet func(*config.Loaded) error
	// OpenFleet makes the daemon's fleet, if the configuration has one.
	OpenFleet func(FleetOptions) (Fleet, error)
	// Signals stop; a second one while it stops ends the calls that run, a third
	// kills them. Reloads are apart from these, so that many of them displace none.
	Signals, Reloads <-chan os.Signal
	// Logger is silent if nil.
	Logger hclog.Logger
}

// Files in the state folder with the tokens of TCP clients: of those that may do
// anything, and of those that may see the metrics.
const (
	TokenName        = "token"
	MetricsTokenName = "metrics-token"
)

// daemon is a running daemon. Its parts are set once, in the order of open.
type daemon struct {
	options   Options
	logger    hclog.Logger
	manager   *manager
	journal   *journal.Journal
	reader    *journal.Reader
	listeners listeners
	host      *supervisor.Supervisor
	fleet     Fleet // nil without one
	tools     *tools
	record    *recorder
	telemetry *telemetry.Telemetry
	tokens    *tokens.Store // nil without a state folder
	trail     trail
	look      look
	known     atomic.Pointer[knownBook]
	owners    sync.Map    // identities of owners of turns, as they last began one
	opened    atomic.Bool // all above is set
	turns     *turn.Manager
	mcp       mcp
	api       *httpapi.Server
	server    *http.Server

	until   context.Context // ends when the daemon begins to stop
	ending  context.CancelFunc
	serving sync.WaitGroup
	broken  chan error // a listener that has failed
}

// Run runs the daemon until a signal ends it. An error is one line.
func Run(o Options) error {
	o.Logger = cmp.Or(o.Logger, hclog.NewNullLogger())
	bound()
	Spare()
	spread()
	manager, given, err := takeOver()
	if err != nil {
		return err
	}
	d := &daemon{options: o, logger: o.Logger, manager: manager, broken: make(chan error, maxListeners+2)}
	d.until, d.ending = context.WithCancel(context.Background())
	defer d.ending()
	if err := d.open(given); err != nil {
		return errors.Join(err, d.close())
	}
	d.trail.configured("daemon.start", o.Loaded)
	d.watchTokens() // what was done with them while no daemon ran
	d.serve()
	err = d.run()
	d.stop()
	if err := d.turns.Approvals().Flush(); err != nil {
		d.logger.Error("revoked approvals are in force again with the next daemon", "error", err)
	}
	d.watchTokens() // what was done with them since the last look
	d.trail.further(true)
	d.trail.add("daemon", "daemon.stop", "", "")
	return errors.Join(err, d.close())
}

// check refuses what is wrong with a configuration as a whole.
func (d *daemon) check(loaded *config.Loaded) error {
	err := cmp.Or(CheckGroups(loaded), d.checkGrants(loaded))
	if err != nil || d.options.CheckFleet == nil {
		return err
	}
	return d.options.CheckFleet(loaded)
}

// open takes first what no other daemon may have, and then what takes time: clients that
// connect meanwhile wait.
func (d *daemon) open(given []net.Listener) error {
	if err := d.check(d.options.Loaded); err != nil {
		return err
	}
	for _, step := range []func() error{
		d.openJournal, func() error { return d.listeners.open(d.options, given) }, d.openTelemetry, d.openOutboxes, d.openHost, d.openAPI,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	d.book() // before a group that was just found can go
	d.opened.Store(true)
	return nil
}

func (d *daemon) openJournal() (err error) {
	dir := d.options.State
	if dir == "" {
		return nil
	}
	d.journal, err = journal.Open(dir, journal.Options{Retention: d.options.Retention, OwnerBytes: d.recordBytes, Ahead: true, Logger: d.logger.Named("journal")})
	switch {
	case errors.Is(err, journal.ErrOwned):
		return fmt.Errorf("%w: a state folder has one daemon: stop that one, or name another folder with --state", err)
	case err != nil:
		return fmt.Errorf("%w; name another folder with --state, or keep no journal with --state none", err)
	}
	if err := d.journal.Recover(time.Now()); err != nil {
		return notRecovered(dir, err)
	}
	if d.reader, err = d.journal.Reader(); err != nil {
		return err
	}
	return d.reader.AuditsOf(tokens.ActionPrefix, func(a journal.Audit) { d.trail.tokens.Note(a.Action, a.What) })
}

// notRecovered is the error of a daemon that cannot close the turns of the one before it in
// the state folder dir.
func notRecovered(dir string, err error) error {
	err = fmt.Errorf("cannot close the turns that the last daemon left open in the state folder %s: %w", dir, err)
	if errors.Is(err, journal.ErrFull) {
		err = fmt.Errorf("%w; make room there", err)
	}
	return err
}

// openHost gives the supervisor what a reload cannot change; each call brings the rest.
func (d *daemon) openHost() (err error) {
	c := d.options.Loaded.Config
	c.NoCgroup = d.options.NoCgroup
	c.Logger = d.logger.Named("supervisor")
	c.Limits, c.Timeouts, c.Profiles, c.Grace = supervisor.Limits{}, nil, nil, 0
	c.Own = func() sandbox.Own { return d.tools.current.Load().own }
	if d.host, err = supervisor.New(context.Background(), c); err != nil {
		return err
	}
	d.tools = newTools(d.host, d.options, d.telemetry)
	return d.openFleet(c)
}

func (d *daemon) openAPI() (err error) {
	d.record = &recorder{logger: d.logger, telemetry: d.telemetry, answered: d.trail.answered}
	if d.journal != nil {
		d.record.journal = journal.Turns{Journal: d.journal}
	}
	d.trail.logger, d.trail.journal = d.logger.Named("audit"), d.journal
	if d.options.State != "" {
		d.tokens = tokens.Open(d.options.State)
	}
	d.mcp.asker, d.mcp.config, d.mcp.describe, d.mcp.retry = mcpserver.NewAsker(), d.mcpConfig, d.tools.describe, d.tools.retry
	d.tools.notice = d.mcp.notice
	approvals, err := d.approvals()
	if err != nil {
		return err
	}
	var history turn.History
	var recall turn.Recall
	if d.reader != nil {
		history, recall = d.reader.Records, d.reader.Recall
	}
	d.turns = turn.New(turn.Config{
		Interactor: d.mcp.asker, History: history, Recall: recall, Approvals: approvals, Program: d.host.Program,
		Start: d.start(), StartWaits: true, Tool: d.tools.tool, Journal: d.record, Observe: d.record.observe, Trace: d.telemetry.Trace, Health: func() any { return d.host.Health() },
		Profiles: func() map[string][]budget.Ask { return d.tools.loaded().Config.Profiles },
		Parallel: d.options.Loaded.Turn.Parallel, Logger: d.logger.Named("turn"),
		Child: func(l net.Listener, of api.Place) { d.api.ServeChild(l, of) }, // d.api comes before any call
	})
	d.api, err = httpapi.New(d.apiConfig())
	if err == nil {
		d.server = d.api.HTTP()
	}
	return err
}

func (d *daemon) apiConfig() httpapi.Config {
	c := httpapi.Config{
		Turns: d.turns, Tools: d.tools, Token: d.listeners.token, MetricsToken: d.listeners.metrics,
		Budget:  func() budget.TurnSpec { return d.tools.loaded().Turn.Budget },
		Refused: d.trail.refused, Note: d.trail.note,
		Book: d.book, Claim: d.claim, Tokens: d.tokens, PublicURL: d.options.Loaded.Daemon.PublicURL, Proxies: d.options.Loaded.Daemon.Proxies, TLS: d.listeners.tls != nil,
		Mounts:     map[string]httpapi.Mount{mcpPath: {Need: access.ToRead, Handler: &d.mcp}},
		Prestarted: d.prestarted,
		Ready:      d.ready, Pages: d.options.Pages, Metrics: d.metrics(), Version: d.options.Version, Logger: d.logger.Named("http"),
	}
	if d.fleet != nil {
		c.Fleet = d.fleet
	}
	if d.reader != nil {
		c.History = d.reader
	}
	return c
}

// ready returns why no call can be made, if so.
func (d *daemon) ready() error {
	if err := cmp.Or(d.record.ready(), d.present()); err != nil {
		return &api.Error{Message: err.Error(), Remedy: "see to it that the state folder of the daemon is there, writable and has room; its log says more"}
	}
	return d.host.Ready()
}

func (d *daemon) serve() {
	for _, l := range d.listeners.all {
		d.logger.Info("listening", "address", l.Addr().String(), "network", l.Addr().Network())
		d.serving.Go(func() {
			if err := d.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				d.broken <- fmt.Errorf("cannot listen on %s any longer: %w", l.Addr(), err)
			}
		})
	}
	if d.listeners.tcp {
		d.tellTokens()
	}
	d.tellGuests()
	d.tellLockedOut()
	d.prestart()
}

// tellTokens logs how clients on TCP authenticate.
func (d *daemon) tellTokens() {
	file := filepath.Join(d.options.State, TokenName)
	switch {
	case d.listeners.old:
		d.logger.Warn("the token in this file never expires and allows everything: make others with toolhost token create, and remove it", "file", file)
	case d.listeners.token != "":
		d.logger.Info("clients on TCP need a token: this one is an administrator's, toolhost token create makes others", "file", file)
	default:
		d.logger.Info("clients on TCP need a token: toolhost token list shows those that there are")
	}
}

// close releases what open took, as far as it got.
func (d *daemon) close() error {
	var errs []error
	if d.server != nil {
		errs = append(errs, d.server.Close())
		d.serving.Wait()
	}
	if d.fleet != nil {
		errs = append(errs, d.fleet.Close())
	}
	if d.host != nil {
		errs = append(errs, d.closeHost())
	}
	d.sendRest()
	if d.tools != nil {
		errs = append(errs, d.tools.packs.Close())
	}
	if d.reader != nil {
		errs = append(errs, d.reader.Close())
	}
	if d.journal != nil {
		errs = append(errs, d.journal.Close())
	}
	d.listeners.close()
	d.manager.close()
	return errors.Join(errs...)
}

// sendRest sends what waits to be sent: receivers that are broken are waited for at the
// same time.
func (d *daemon) sendRest() {
	var all sync.WaitGroup
	all.Go(d.trail.close)
	if d.telemetry != nil {
		all.Go(d.telemetry.Close) // its last word is of a host without calls
	}
	all.Wait()
}

// hostLimit bounds the wait for a process that the kernel does not release.
const hostLimit = 30 * time.Second

func (d *daemon) closeHost() error {
	closed := make(chan error, 1)
	go func() { closed <- d.host.Close() }()
	select {
	case err := <-closed:
		return err
	case <-time.After(hostLimit):
		return errors.New("a call's processes are held by the kernel and cannot be ended: see dmesg")
	}
}
