package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/serve/telemetry"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/internal/tools/config"
	"github.com/toolhost/toolhost/internal/tools/pack"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// tools are those of the configuration in force. A reload replaces all of them at once;
// running calls keep what they began with.
type tools struct {
	host      *supervisor.Supervisor
	telemetry *telemetry.Telemetry
	options   Options
	packs     pack.Cache
	notice    func(entry, share, method string, params json.RawMessage) // set before any tool is called
	current   atomic.Pointer[snapshot]
}

// snapshot is a configuration with its catalogue, and what no tool is granted.
type snapshot struct {
	loaded  *config.Loaded
	own     sandbox.Own
	catalog *catalog.Catalog
}

func newTools(host *supervisor.Supervisor, o Options, metrics *telemetry.Telemetry) *tools {
	t := &tools{host: host, telemetry: metrics, options: o}
	t.current.Store(t.snapshot(o.Loaded))
	return t
}

func (t *tools) snapshot(loaded *config.Loaded) *snapshot {
	return &snapshot{loaded, Own(loaded, t.options.State), catalog.New(t, loaded, catalog.Options{
		Adapter: t.options.Adapter, State: t.options.State, Packs: &t.packs, Machine: t.options.Machine,
		Notices: func(entry, share, method string, params json.RawMessage) {
			if t.notice != nil {
				t.notice(entry, share, method, params)
			}
		},
		Warn: func(warning string) { t.options.Logger.Warn("tools: " + warning) },
		// The supervisor is asked for nothing that a reload could change.
		Adjust: func(r *supervisor.Request) {
			r.Timeouts, r.Profiles = slices.Concat(loaded.Config.Timeouts, r.Timeouts), config.Together(loaded.Config.Profiles, r.Profiles)
		},
	})}
}

// Describe implements catalog.Host.
func (t *tools) Describe(ctx context.Context, r supervisor.Request) (*supervisor.Description, *api.Result) {
	began := time.Now()
	description, failed := t.host.Describe(ctx, r)
	t.telemetry.Described(time.Since(began), failed)
	return description, failed
}

func (t *tools) loaded() *config.Loaded { return t.current.Load().loaded }

// describe describes the tools of the configuration in force.
func (t *tools) describe(ctx context.Context) { _, _ = t.current.Load().catalog.All(ctx) }

// retry is catalog.Retry of the configuration in force.
func (t *tools) retry(ctx context.Context, recovered func()) {
	t.current.Load().catalog.Retry(ctx, recovered)
}

// tool looks a tool up for a turn.
func (t *tools) tool(name string) (turn.Tool, bool) { return t.current.Load().catalog.Offered(name) }

// offers reports whether the tool certainly exists: the tool of a server that could not be
// described may be only a name that somebody made up.
func (t *tools) offers(name string) bool {
	g := t.current.Load()
	if entry, ok := g.loaded.Tool(name); ok && entry.Type != config.TypeMCP {
		return true
	}
	_, err := g.catalog.Known(name)
	return err == nil
}

// names returns the names of the file's own tools and of those that servers are known to
// have, some of them twice.
func (t *tools) names() []string {
	g := t.current.Load()
	list := g.catalog.Described()
	for _, entry := range g.loaded.Tools {
		if entry.Type != config.TypeMCP {
			list = append(list, entry.Name)
		}
	}
	return list
}

// Tools implements httpapi.Catalogue.
func (t *tools) Tools(ctx context.Context, name string) (list []api.Tool, problems []error) {
	if name != "" {
		return t.named(ctx, name)
	}
	found, problems := t.current.Load().catalog.All(ctx)
	list = make([]api.Tool, 0, len(found))
	for _, tool := range found {
		list = append(list, offered(tool))
	}
	return list, problems
}

func (t *tools) named(ctx context.Context, name string) (list []api.Tool, problems []error) {
	found, err := t.current.Load().catalog.Find(ctx, name)
	if _, none := errors.AsType[*catalog.NotFoundError](err); none {
		return nil, nil
	}
	if err == nil && found.Held != "" {
		err = &catalog.HeldError{Tool: found}
	}
	if err != nil {
		return nil, []error{err}
	}
	return []api.Tool{offered(found)}, nil
}
