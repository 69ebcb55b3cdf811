package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/toolhost/toolhost/internal/cli/cmdline"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/internal/journal/state"
	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/internal/tools/config"
)

// daemonStateUsage is of a --state that names the folder of a daemon.
const daemonStateUsage = "the daemon's state folder `DIR` (default that of the configuration, else $" + state.Variable + ", else /var/lib/toolhost as root, else ~/.local/state/toolhost)"

// journalFlags say where a journal is kept, and for how long.
type journalFlags struct {
	state string
	// byDefault: without --state there is one all the same.
	byDefault bool
	// configured says what --state leaves open, and how long a journal is kept, these
	// flags included; nil for a command that reads no configuration.
	configured *config.Loaded

	given *pflag.FlagSet
}

func (f *journalFlags) register(cmd *cobra.Command, byDefault bool) {
	f.byDefault = byDefault
	usage := "keep a journal in the folder `DIR` (default none)"
	if byDefault {
		usage = "keep the journal in the folder `DIR`, or none (default $" + state.Variable + ", else /var/lib/toolhost as root, else ~/.local/state/toolhost)"
	}
	cmd.Flags().StringVar(&f.state, "state", "", usage)
	f.registerRetention(cmd)
}

var retentionKeys = keys{"retain": "journal.maxAge", "retain-size": "journal.maxSize"}

func (f *journalFlags) registerRetention(cmd *cobra.Command) {
	f.given = cmd.Flags()
	cmdline.DurationVar(f.given, new(time.Duration), "retain", 0, "drop turns from the journal that ended longer ago (default 720h)")
	f.given.String("retain-size", "", "drop the oldest turns from the journal above this size, or infinity (default 512MiB)")
}

// retention is that of the configuration, the flags on top, or of these alone.
func (f *journalFlags) retention() (r journal.Retention, err error) {
	loaded := f.configured
	if loaded == nil {
		if loaded, err = config.OfFlags(retentionKeys.layer(f.given)); err != nil {
			return r, configError(err)
		}
	}
	return journal.Retention(loaded.Journal), nil
}

// dir is the folder of the journal; empty means none.
func (f *journalFlags) dir() (string, error) {
	switch {
	case f.state == state.None, f.state == "" && !f.byDefault:
		return "", nil
	case f.state != "":
		return f.state, nil
	}
	return stateFolder(f.configured)
}

// stateFolder is that of the configuration, if there is one, else the default; empty means
// none.
func stateFolder(loaded *config.Loaded) (string, error) {
	configured := ""
	if loaded != nil {
		configured = loaded.State
	}
	dir, err := state.Folder(configured)
	if err != nil {
		return "", exit.With(exit.Usage, err)
	}
	return dir, nil
}

// open gives a journal of this process's own; nil if there is to be none.
func (f *journalFlags) open(o journal.Options) (_ *journal.Journal, err error) {
	if o.Retention, err = f.retention(); err != nil {
		return nil, err
	}
	dir, err := f.dir()
	if dir == "" || err != nil {
		return nil, err
	}
	kept, err := state.Claim(dir, o)
	if err != nil {
		return nil, hostError(fmt.Errorf("%w; name another folder with --state, or keep no journal with --state none", err))
	}
	tellFound(os.Stderr, state.FoundIn(kept))
	left, err := state.Tend(dir, o)
	for _, found := range left {
		tellFound(os.Stderr, found)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "toolhost: cannot prune a journal of earlier commands: %s\n", terminal.OneLine(err.Error()))
	}
	return kept, nil
}

// tellFound says what became of a journal before it was opened. Nobody else
// does: the turns that were on record are missing, or ended without their host.
func tellFound(w io.Writer, found state.Found) {
	if found.MovedAside != "" {
		fmt.Fprintf(w, "toolhost: the journal in %s was damaged (%s): it was moved to %s, and a new one begun\n",
			terminal.OneLine(found.Dir), terminal.OneLine(fmt.Sprint(found.Damage)), terminal.OneLine(found.MovedAside))
	}
	if found.Closed > 0 {
		fmt.Fprintf(w, "toolhost: turns that died with their host: %d in %s, closed now; toolhost log shows them\n", found.Closed, terminal.OneLine(found.Dir))
	}
}

// apart refuses to let calls write where the journal is kept: they could change
// what is on record of them.
func (f *journalFlags) apart(granted []string) error {
	dir, err := f.dir()
	if dir == "" || err != nil {
		return err
	}
	dir = resolved(dir)
	for _, path := range granted {
		if rel, err := filepath.Rel(resolved(path), dir); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			return exit.Usagef("--write %s would let calls change their own journal in %s: keep it elsewhere with --state, or none with --state none", path, dir)
		}
	}
	return nil
}

// resolved is an absolute path without links, as far as it exists.
func resolved(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	for rest := ""; ; {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return filepath.Join(real, rest)
		}
		if path == "/" {
			return filepath.Join(path, rest)
		}
		rest = filepath.Join(filepath.Base(path), rest)
		path = filepath.Dir(path)
	}
}
