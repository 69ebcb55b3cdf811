// Package catalog offers the tools of a configuration: under the names that
// models call them by, with what they say of themselves and with the requests
// that their calls begin with. Tools are described when they are first asked
// for.
package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/tools/config"
	"github.com/toolhost/toolhost/internal/tools/mcpname"
	"github.com/toolhost/toolhost/internal/tools/pack"
	"github.com/toolhost/toolhost/internal/tools/pins"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// Tool is one that can be called.
type Tool struct {
	// Tool is what a turn takes; its name is the model's.
	turn.Tool
	// Description is the tool's own, under that name and with the operator's
	// title and description, if there are any.
	Description     *pluginv1.ToolDescription
	Version, SHA256 string
	// Entry is what the configuration says of it.
	Entry config.Tool
	// NotPrestarted is why no process is to run before a call, beside what the
	// supervisor's Explain says; empty if one may.
	NotPrestarted string

	own string // its name on its MCP server, and what that says of it
	pin pins.Tool
}

// Host describes tools; a *supervisor.Supervisor does.
type Host interface {
	Describe(ctx context.Context, r supervisor.Request) (*supervisor.Description, *api.Result)
}

// Options of New.
type Options struct {
	// Adapter is the toolhost binary, for tools that are MCP servers.
	Adapter string
	// State is the folder below which tools with `data` keep their workspaces.
	State string
	// Packs holds those that the configuration names; nil refuses them.
	Packs *pack.Cache
	// Machine is where secrets are read.
	Machine config.Machine
	// Once has the process that has described an MCP server make the first call of it,
	// for hosts that live no longer than their calls.
	Once bool
	// Adjust, if not nil, has the last word on every request.
	Adjust func(r *supervisor.Request)
	// Notices, if not nil, gets what the kept process of a server announces, by the
	// entry's name; see supervisor.Keep.
	Notices func(entry, share, method string, params json.RawMessage)
	// Warn, if not nil, is told each of Warnings once, when it comes up. It may be
	// called by several goroutines at once.
	Warn func(warning string)
}

// Catalog is one configuration's tools. Its methods may be called from any
// goroutine.
type Catalog struct {
	host    Host
	loaded  *config.Loaded
	options Options
	renewed chan struct{} // holds one: Renew has

	mu    sync.Mutex
	known map[string]*known // by the entry's name
	// failed are the entries that could not be described the last time.
	failed map[string]failure
	// recovered: one of them has been described since Retry has last looked.
	recovered bool
	// said is what servers say of their tools, by the entry's name.
	said map[string]map[string]pins.Tool
	// warnings are those of what was described, by the entry's name, and former those
	// of the description before.
	warnings, former map[string][]string
	// offers is what servers have beside tools, by the entry's name.
	offers map[string]*pluginv1.Server
	// earlier are the entries that lists show as they were, by their names.
	earlier map[string]earlier
}

// known is an entry that is being, or has been, described.
type known struct {
	done  chan struct{}
	tools []Tool
	err   error
	// abandoned is set when its Describe was given up.
	abandoned bool
}

// failure is why an entry could not be described, and until when lists take that
// for granted.
type failure struct {
	err  error
	rest time.Time
}

// New makes a catalog. It starts nothing.
func New(host Host, loaded *config.Loaded, o Options) *Catalog {
	return &Catalog{host: host, loaded: loaded, options: o, renewed: make(chan struct{}, 1), known: map[string]*known{}, failed: map[string]failure{}, said: map[string]map[string]pins.Tool{}, offers: map[string]*pluginv1.Server{}, earlier: map[string]earlier{}, warnings: map[string][]string{}, former: map[string][]string{}}
}

// NotFoundError says that no tool has the name.
type NotFoundError struct {
	Name string
	// Server is the entry whose tools have names like it, empty if none has; Tools
	// are what these are.
	Server config.Tool
	Tools  []string
}

// maxNamed bounds the tools that an error names.
const maxNamed = 10

func (e *NotFoundError) Error() string {
	if e.Server.Name != "" {
		has := "did you mean " + config.Nearest(e.Name, e.Tools) + "?"
		if config.Nearest(e.Name, e.Tools) == "" {
			has = "it has " + strings.Join(e.Tools[:min(len(e.Tools), maxNamed)], ", ")
			if more := len(e.Tools) - maxNamed; more > 0 {
				has += fmt.Sprintf(" and %d more, see toolhost tools", more)
			}
		}
		return fmt.Sprintf("the MCP server %s (%s) has no tool %q: %s", e.Server.Name, e.Server.Source, e.Name, has)
	}
	return fmt.Sprintf("no tool %q is configured: toolhost tools lists those that are", e.Name)
}

// DescribeError says why tools are not known: a call would end as Result does.
type DescribeError struct {
	Entry  config.Tool // the zero value for a tool that is not configured
	Result *api.Result
}

func (e *DescribeError) Error() string {
	if e.Entry.Name == "" {
		return e.Result.Message
	}
	return fmt.Sprintf("tool %s (%s): %s", e.Entry.Name, e.Entry.Source, e.Result.Message)
}

// Find finds a tool by the name that models call it by, and describes no more
// for it than must be: nothing that is denied. Errors are *NotFoundError,
// *DescribeError and others of one line.
func (c *Catalog) Find(ctx context.Context, name string) (Tool, error) {
	return c.find(name, func(entry config.Tool) ([]Tool, error) { return c.describe(ctx, entry) })
}

// find looks through the entries that may hold the tool.
func (c *Catalog) find(name string, toolsOf func(config.Tool) ([]Tool, error)) (Tool, error) {
	var failed error
	var denied *Tool
	var none *NotFoundError
	for _, h := range c.holders(name) {
		deny, of := c.denied(*h.tool), toolsOf
		if deny {
			of = c.peek
		}
		tools, err := of(*h.entry)
		if i := slices.IndexFunc(tools, func(t Tool) bool { return t.Name == name }); i >= 0 {
			return tools[i], nil
		}
		switch {
		case deny && err != nil && denied == nil:
			denied = new(c.undescribed(name, *h.tool))
		case !deny:
			failed = errors.Join(failed, err)
		}
		none = none.lookedThrough(name, h.entry, tools)
	}
	switch {
	case failed != nil:
		return Tool{}, failed
	case denied != nil:
		return *denied, nil
	}
	return Tool{}, cmp.Or(none, &NotFoundError{Name: name})
}

// lookedThrough is the error after a server was looked through, if its prefix is the name's.
func (e *NotFoundError) lookedThrough(name string, entry *config.Tool, tools []Tool) *NotFoundError {
	if prefix := entry.MCP.Prefix; prefix == "" || !strings.HasPrefix(name, prefix+mcpname.Separator) || len(tools) == 0 {
		return e
	}
	e = &NotFoundError{Name: name, Server: *entry}
	for _, t := range tools {
		e.Tools = append(e.Tools, t.Name)
	}
	return e
}

// holder is an entry that a tool can come from, and what it says of that tool.
type holder struct{ entry, tool *config.Tool }

// holders are the entries that a tool of this name can come from: where the file
// has a tool of the name, that one alone, even if it cannot be described; of
// session_status, which turns answer themselves, nobody.
func (c *Catalog) holders(name string) (list []holder) {
	if name == turn.StatusTool {
		return nil
	}
	if own, ok := c.named(name); ok {
		return []holder{{own, own}}
	}
	for i := range c.loaded.Tools {
		entry := &c.loaded.Tools[i]
		if entry.Type != config.TypeMCP {
			continue
		}
		prefix := entry.MCP.Prefix
		if prefix != "" && !mcpname.Hashed(name) && !strings.HasPrefix(name, prefix+mcpname.Separator) {
			continue
		}
		if one := settingsFor(entry, name); !one.Hidden {
			list = append(list, holder{entry, one})
		}
	}
	return list
}

// named returns the entry that is itself the tool of this name, not a server.
func (c *Catalog) named(name string) (*config.Tool, bool) {
	entry, ok := c.loaded.Tool(name)
	return entry, ok && entry.Type != config.TypeMCP
}

// Server is an entry's tools by the entry's name: all of an MCP server's, or
// the one that it is.
func (c *Catalog) Server(ctx context.Context, entry string) ([]Tool, error) {
	found, ok := c.loaded.Tool(entry)
	if !ok {
		return nil, &NotFoundError{Name: entry}
	}
	return c.describe(ctx, *found)
}

// maxDescribing bounds how many entries are described at once.
const maxDescribing = 16

// What took long to fail is left alone for restFactor times as long, at most
// maxRest, by who wants to see all tools: no list hangs again and again for one
// that hangs. Who wants that tool tries it.
const (
	restFactor = 10
	maxRest    = time.Minute
)

// All describes everything. What cannot be described is missing, and the errors
// say why; so do they where tools of two servers would have the same name.
func (c *Catalog) All(ctx context.Context) (tools []Tool, problems []error) {
	slots := make(chan struct{}, maxDescribing)
	made := make([]known, len(c.loaded.Tools))
	var all sync.WaitGroup
	for i, entry := range c.loaded.Tools {
		if k := c.made(entry.Name); k != nil {
			made[i].tools = c.release(entry, k.tools)
			continue
		}
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			made[i].tools, made[i].err = c.list(ctx, entry)
		})
	}
	all.Wait()
	n := 0
	for _, k := range made {
		n += len(k.tools)
	}
	tools = make([]Tool, 0, n) // there may be thousands, and each is large
	for _, k := range made {
		if k.err != nil {
			problems = append(problems, k.err)
		}
		tools = append(tools, k.tools...)
	}
	return withoutHeld(distinct(tools, problems))
}

// distinct refuses tools whose name is taken. The list is its own.
func distinct(tools []Tool, problems []error) ([]Tool, []error) {
	byName := make(map[string]int, len(tools))
	kept := tools[:0]
	for i := range tools {
		t := &tools[i]
		if at, taken := byName[t.Name]; taken {
			first := kept[at].Entry
			problems = append(problems, fmt.Errorf("two tools are named %s: of %s (%s) and of %s (%s): give one of them another prefix, or hide it", t.Name, first.Name, first.Source, t.Entry.Name, t.Entry.Source))
			continue
		}
		byName[t.Name] = len(kept)
		kept = append(kept, *t)
	}
	return kept, problems
}

// made is finished for who does not hold the lock.
func (c *Catalog) made(name string) *known {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.finished(name)
}

// finished is an entry that has been described; nil for one that has to be. The catalog is
// locked.
func (c *Catalog) finished(name string) *known {
	k := c.known[name]
	if k == nil {
		return nil
	}
	select {
	case <-k.done:
		return k // one that has failed is not among the known
	default:
		return nil
	}
}

// describe makes an entry's tools once; who comes meanwhile waits. After a
// failure the next one tries again, and at once if it was only that somebody
// else has given up.
func (c *Catalog) describe(ctx context.Context, entry config.Tool) ([]Tool, error) {
	for {
		k, first := c.claim(entry.Name)
		if first {
			began := time.Now()
			k.tools, k.err = c.make(ctx, entry)
			k.abandoned = ctx.Err() != nil
			c.settle(entry.Name, k, time.Since(began))
			close(k.done)
		}
		select {
		case <-k.done:
			if first || k.err == nil || !k.abandoned {
				return c.release(entry, k.tools), k.err
			}
		case <-ctx.Done():
			return nil, notDescribed(entry, context.Cause(ctx))
		}
	}
}

func (c *Catalog) claim(name string) (k *known, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k = c.known[name]; k != nil {
		return k, false
	}
	k = &known{done: make(chan struct{})}
	c.known[name] = k
	return k, true
}

// settle keeps what was made, or why it was not.
func (c *Catalog) settle(name string, k *known, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, before := c.failed[name]
	c.recovered = c.recovered || before && k.err == nil
	delete(c.failed, name)
	if k.err == nil || !k.abandoned {
		delete(c.earlier, name)
	}
	if k.err != nil {
		if c.known[name] == k {
			delete(c.known, name)
		}
		last := failure{err: k.err}
		if !k.abandoned {
			last.rest = time.Now().Add(min(restFactor*took, maxRest))
		}
		c.failed[name] = last
	}
}
