package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/pflag"

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/cli/present"
	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/internal/journal/state"
	"github.com/toolhost/toolhost/internal/serve/daemon"
	"github.com/toolhost/toolhost/internal/serve/mcpserver"
	"github.com/toolhost/toolhost/internal/signals"
	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/internal/text"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/internal/tools/config"
	"github.com/toolhost/toolhost/internal/tools/pack"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// app is what a command works with: the configuration, the host that it makes,
// and the tools, each with the flags on top.
type app struct {
	flags   *callFlags
	loaded  *config.Loaded
	host    *supervisor.Supervisor
	catalog *catalog.Catalog
	packs   pack.Cache
	// notices gets what wrapped servers announce; nil drops it.
	notices atomic.Pointer[mcpserver.Server]
	// tells: the catalogue's warnings go to stderr as they come up. It is set before
	// tools are described.
	tells bool
	// view, while there is one, has stderr: what is printed beside it would be drawn over.
	view atomic.Pointer[present.View]
}

// open checks the flags, reads the configuration and makes the host. The app
// must be closed.
func (f *callFlags) open() (*app, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	machine, err := config.ThisMachine()
	if err != nil {
		return nil, hostError(err)
	}
	loaded, err := config.Load(config.Options{Path: f.config, Machine: &machine, Flags: f.layer()})
	if err != nil {
		return nil, configError(err)
	}
	f.warnOfEnv()
	f.journal.configured = loaded
	granted := loaded.Default.Sandbox // by flags: the file grants to its tools
	if err := granted.Check(); err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	if err := f.journal.apart(granted.Write); err != nil {
		return nil, err
	}
	if err := daemon.CheckPolicy(loaded, f.dataDir(loaded), granted); err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	if err := daemon.CheckGrants(loaded, f.dataDir(loaded)); err != nil {
		return nil, configError(err)
	}
	return f.openWith(loaded, machine)
}

// openOnce is open for a command that makes one call.
func (f *callFlags) openOnce() (*app, error) {
	f.once = true
	if os.Getenv("GOGC") == "" { // garbage is collected from 16 MiB on, and not from 4: mostly all is over before
		debug.SetGCPercent(400)
	}
	f.trace.begin()
	k, err := f.open()
	f.trace.mark("open")
	return k, err
}

func (f *callFlags) openWith(loaded *config.Loaded, machine config.Machine) (*app, error) {
	self, err := ownProgram()
	if err != nil {
		return nil, hostError(err)
	}
	signals.OutliveReader() // what is made here is removed by Close
	k := &app{flags: f, loaded: loaded}
	c := loaded.Config
	if f.spill != "" { // a folder of the caller's own: nothing is removed there
		c.SpillDir, c.SpillTotalBytes = f.spill, -1
	}
	c.CgroupParent = cmp.Or(f.cgroupParent, c.CgroupParent)
	c.NoCgroup, c.Recall = f.noCgroup, f.once
	if f.once {
		c.Prestart.Processes = -1 // there is no later call
	}
	own := daemon.Own(loaded, f.dataDir(loaded))
	c.Own = func() sandbox.Own {
		all := own
		all.Fixed = slices.Concat(own.Fixed, f.trace.files())
		return all
	}
	if k.host, err = supervisor.New(context.Background(), c); err != nil {
		return nil, hostError(orWithout(err))
	}
	k.catalog = catalog.New(k.host, loaded, catalog.Options{Adapter: self, State: f.dataDir(loaded), Packs: &k.packs, Machine: machine, Once: f.once, Adjust: f.collect, Warn: k.warn, Notices: k.notice})
	return k, nil
}

func (k *app) notice(entry, share, method string, params json.RawMessage) {
	if server := k.notices.Load(); server != nil {
		server.Notice(entry, share, method, params)
	}
}

// warn may be called by several goroutines at once.
func (k *app) warn(warning string) {
	if !k.tells || k.flags.quiet || k.flags.json || k.flags.events {
		return
	}
	line := "toolhost: warning: " + terminal.OneLine(warning) + "\n"
	if view := k.view.Load(); view != nil {
		view.Print(line)
	} else {
		fmt.Fprint(os.Stderr, line)
	}
}

func (k *app) Close() {
	if err := k.host.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "toolhost: warning: "+terminal.OneLine("cannot remove all that the call has used: "+err.Error()))
	}
	_ = k.packs.Close() // at worst a copy is left, which the next one removes
}

// ownProgram is this program as it runs, which starts itself as an adapter. The file at its
// path may be another one by now.
func ownProgram() (string, error) {
	_, err := ownPath()
	return "/proc/self/exe", err
}

// ownPath is where this program was when it began.
func ownPath() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("cannot find the path of this program: %w; mount /proc, which tells it", err)
	}
	return path, nil
}

// configured is for commands that have no flags of a call but the file's.
func configured(path string) *callFlags { return &callFlags{config: path, given: &pflag.FlagSet{}} }

// dataDir is where tools keep what stays; empty if there is no such place.
func (f *callFlags) dataDir(loaded *config.Loaded) string {
	if f.journal.state != "" && f.journal.state != state.None {
		return f.journal.state
	}
	dir, _ := stateFolder(loaded)
	return dir
}

// turns are the settings of all turns of the command, whose journal may be nil.
func (k *app) turns(kept *journal.Journal) turn.Config {
	c := turn.Config{Parallel: k.loaded.Turn.Parallel, Start: turn.Supervised(k.host), StartWaits: true, Program: k.host.Program, Profiles: func() map[string][]budget.Ask { return k.loaded.Config.Profiles }}
	if kept != nil {
		own := journal.Turns{Journal: kept}
		c.Journal, c.History = own, own.Records
	}
	return c
}

// base is what a call begins with whose tool is in no configuration.
func (k *app) base() supervisor.Request {
	r := k.loaded.Default.Request()
	k.flags.collect(&r)
	return r
}

// request is one for a tool of a binary, or of a pack's.
func (k *app) request(named supervisor.Tool) (supervisor.Request, error) {
	r := k.base()
	r.Tool = named
	if pack.Is(named.Path) {
		return k.unpack(r)
	}
	return r, nil
}

// find finds a tool by a name of the configuration, or by a plugin's path.
func (k *app) find(ctx context.Context, word string) (catalog.Tool, error) {
	if !strings.Contains(word, "/") {
		tool, err := k.catalog.Find(ctx, word)
		none, missing := errors.AsType[*catalog.NotFoundError](err)
		switch {
		case !missing:
			return tool, err
		case none.Server.Name != "": // whose tools have names like it
			return catalog.Tool{}, exit.With(exit.Usage, none)
		}
		if entry, named := k.loaded.Tool(word); named {
			return catalog.Tool{}, exit.Usagef("%q is an MCP server, with tools of its own: toolhost tools lists them (%s)", word, entry.Source)
		}
		if !k.found(word) {
			file := cmp.Or(k.loaded.Path, "a toolhost.yaml ("+noFile()+")")
			return catalog.Tool{}, exit.Usagef("no tool %q: it is neither in %s nor in PATH; give a plugin's path, such as ./%s", word, file, word)
		}
	}
	return k.plugin(ctx, splitTool(word))
}

// found says whether a word without a slash, which no configuration has, is a
// plugin's in PATH or a pack's.
func (k *app) found(word string) bool {
	if _, named := k.loaded.Tool(word); named {
		return false
	}
	path := splitTool(word).Path
	_, err := exec.LookPath(path)
	return err == nil || pack.Is(path)
}

// noFile says that there is no configuration. People expect the one in their
// folder to be read.
func noFile() string {
	if _, err := os.Lstat("toolhost.yaml"); err == nil {
		return "./toolhost.yaml is read only where it is named: --config toolhost.yaml"
	}
	return "no configuration found, see toolhost config"
}

// plugin is a tool of a binary that no configuration names. An error is a
// *catalog.DescribeError.
func (k *app) plugin(ctx context.Context, named supervisor.Tool) (catalog.Tool, error) {
	request, err := k.request(named)
	if err != nil {
		return catalog.Tool{}, err
	}
	tool := catalog.Tool{Entry: k.loaded.Default}
	tool.Name, tool.Request, tool.Mode = cmp.Or(named.Name, filepath.Base(named.Path)), request, k.loaded.Default.Mode
	if tool.Mode == turn.ModeDeny { // then nothing of it is run
		return tool, nil
	}
	described, failed := k.host.Describe(ctx, request)
	if failed != nil {
		return tool, &catalog.DescribeError{Result: failed}
	}
	own := described.Tool(named.Name)
	if own == nil && named.Name == "" && len(described.Tools) > 1 {
		return catalog.Tool{}, severalTools(cmp.Or(request.Tool.Label, named.Path), described.Names())
	}
	if own == nil {
		return tool, nil // the supervisor says what there is instead
	}
	return k.catalog.Unlisted(request, own, described), nil
}

// severalTools says how one of them is named.
func severalTools(path string, names []string) error {
	return exit.Usagef("%s has several tools: name one behind a colon, as in %s:%s; it has %s", path, path, named(names[:1]), named(names))
}

// maxNamed and maxNameRunes bound what an error says of tools.
const (
	maxNamed     = 12
	maxNameRunes = 60
)

// named lists names of tools, which are anybody's text.
func named(names []string) string {
	var list []string
	for _, name := range names[:min(len(names), maxNamed)] {
		list = append(list, text.Cut(terminal.OneLine(name), maxNameRunes))
	}
	text := strings.Join(list, ", ")
	if more := len(names) - len(list); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// collect has the files that a call leaves copied to --out.
func (f *callFlags) collect(r *supervisor.Request) { r.FilesTo = f.out }

// splitTool takes PATH:NAME apart, unless a file has the whole name.
func splitTool(s string) supervisor.Tool {
	if _, err := os.Stat(s); err != nil {
		if i := strings.LastIndex(s, ":"); i > 0 {
			return supervisor.Tool{Path: s[:i], Name: s[i+1:]}
		}
	}
	return supervisor.Tool{Path: s}
}
