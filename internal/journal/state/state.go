// Package state is the folder in which toolhost keeps what outlives a process:
// the journal of a daemon, which owns the folder, and those of commands, which
// take turns in a pool of their own, since a journal has one owner at a time:
//
//	DIR/journal.db              the daemon's
//	DIR/commands/1/journal.db   the first command's; of commands that run at
//	DIR/commands/2/journal.db   the same time, each has its own
//
// A [Log] reads them all as one.
package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/toolhost/toolhost/internal/journal"
)

// None, in place of a folder, keeps no journal.
const None = "none"

// Variable names the environment variable with the folder.
const Variable = "TOOLHOST_STATE"

// Default is the folder where none is named: $TOOLHOST_STATE, root's
// /var/lib/toolhost, $XDG_STATE_HOME/toolhost or ~/.local/state/toolhost.
func Default() (string, error) {
	if dir := os.Getenv(Variable); dir != "" {
		return dir, nil
	}
	if dirs := Standard(); len(dirs) > 0 {
		return dirs[0], nil
	}
	return "", errors.New("cannot find a folder for the journal: set HOME or " + Variable + ", or give --state DIR or --state none")
}

// Folder is the configured one, or else the default; empty means that there is to be none.
func Folder(configured string) (dir string, err error) {
	if dir = configured; dir == "" {
		dir, err = Default()
	}
	if dir == None {
		dir = ""
	}
	return dir, err
}

// Standard are the folders of this user that programs use which are not told another:
// that of this program first.
func Standard() (dirs []string) {
	if os.Geteuid() == 0 {
		return []string{"/var/lib/toolhost"}
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) { // as its specification wants
		dirs = append(dirs, filepath.Join(dir, "toolhost"))
	}
	if home := os.Getenv("HOME"); filepath.IsAbs(home) {
		dirs = append(dirs, filepath.Join(home, ".local", "state", "toolhost"))
	}
	return dirs
}

// Protected are the folders that no tool may be granted: the given ones, that of the
// variable, and the standard ones, absolute.
func Protected(given ...string) (dirs []string) {
	variable, _ := Default() // without one there is nothing to protect
	for _, dir := range slices.Concat(given, []string{variable}, Standard()) {
		if full, err := filepath.Abs(dir); err == nil && dir != "" && dir != None {
			dirs = append(dirs, full)
		}
	}
	return dirs
}

const (
	commandsDir = "commands"
	// maxCommands bounds the commands that keep a journal in one folder at the
	// same time.
	maxCommands = 256
)

// Claim makes the caller the owner of a journal of its own below dir: the first
// that nobody has. What an owner that died left open in it is closed. o's
// MaxBytes is for the journals of all commands together, but for what those that run at the
// same time add.
func Claim(dir string, o journal.Options) (*journal.Journal, error) {
	pool, err := preparePool(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot keep a journal in %s: %w", dir, err)
	}
	held, err := heldBytes(pool)
	if err != nil {
		return nil, err
	}
	for n := range maxCommands {
		own, o := filepath.Join(pool, strconv.Itoa(n+1)), o
		o.Retention = shareOf(held, own, n+1, o.Retention) // all before it are taken
		j, err := openOwn(own, o)
		if !errors.Is(err, journal.ErrOwned) {
			return j, err
		}
	}
	return nil, fmt.Errorf("cannot keep a journal in %s: %d commands do already: wait, or name another folder", dir, maxCommands)
}

// openOwn also closes what a dead owner left open.
func openOwn(dir string, o journal.Options) (*journal.Journal, error) {
	j, err := journal.Open(dir, o)
	if err != nil {
		return nil, err
	}
	if err := j.Recover(time.Now()); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

// preparePool checks each folder on the way: a user who can write to one
// could exchange everything below it.
func preparePool(dir string) (string, error) {
	dir, err := journal.PrepareDir(dir)
	if err != nil {
		return "", err
	}
	return journal.PrepareDir(filepath.Join(dir, commandsDir))
}

// heldBytes are the sizes of commands' journals, below pool, by their folders.
func heldBytes(pool string) (map[string]int64, error) {
	dirs, err := slots(pool)
	held := map[string]int64{}
	for _, dir := range dirs {
		held[dir] = 0
		if info, err := os.Stat(filepath.Join(dir, journal.DatabaseName)); err == nil {
			held[dir] = info.Size()
		}
	}
	return held, err
}

// shareOf lets the journal in dir keep what it has, with its part of what is free where so
// many commands run, and no less than an equal share: most journals are idle after a time with
// many commands at once.
func shareOf(held map[string]int64, dir string, running int, r journal.Retention) journal.Retention {
	if r.MaxBytes < 0 {
		return r
	}
	all := r.Defaulted().MaxBytes
	free := all
	for _, bytes := range held {
		free -= bytes
	}
	r.MaxBytes = max(held[dir]+free/int64(running), all/int64(max(len(held), 1)))
	return r
}

// slots are the folders of commands' journals, below pool.
func slots(pool string) ([]string, error) {
	entries, err := os.ReadDir(pool)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var dirs []string
	for _, entry := range entries {
		if n, err := strconv.Atoi(entry.Name()); err == nil && n > 0 && entry.IsDir() {
			dirs = append(dirs, filepath.Join(pool, entry.Name()))
		}
	}
	return dirs, err
}

// Found is what the opening of a journal came upon, for people to know.
type Found struct {
	Dir string
	// MovedAside and Damage are as in [journal.Report].
	MovedAside string
	Damage     error
	// Closed counts the turns of owners that died, which are closed now.
	Closed int
}

// FoundIn is what the opening of j, by Claim, came upon.
func FoundIn(j *journal.Journal) Found {
	r := j.Report()
	return Found{Dir: j.Dir(), MovedAside: r.MovedAside, Damage: r.Damage, Closed: len(j.Unfinished())}
}

// Pruned is what Prune did.
type Pruned struct {
	Turns int
	Found []Found
	// Owned are the journals that have an owner, who prunes them.
	Owned []string
}

// Prune does in all journals below dir what r asks for, and closes what dead
// owners left open.
func Prune(dir string, r journal.Retention) (p Pruned, err error) {
	dirs, err := journals(dir)
	if err != nil {
		return p, err
	}
	if len(dirs) == 0 {
		return p, noJournal(dir)
	}
	held, err := heldBytes(filepath.Join(dir, commandsDir))
	if err != nil {
		return p, err
	}
	for _, one := range dirs {
		o := journal.Options{Retention: r}
		if one != dir {
			o.Retention = shareOf(held, one, 1, r)
		}
		n, found, err := pruneOne(one, o)
		p.Turns += n
		p.Found = append(p.Found, found...)
		if errors.Is(err, journal.ErrOwned) {
			p.Owned = append(p.Owned, one)
		} else if err != nil {
			return p, err
		}
	}
	return p, nil
}

// pruneOne gives no more than one Found.
func pruneOne(dir string, o journal.Options) (turns int, found []Found, err error) {
	j, err := openOwn(dir, o)
	if err != nil {
		return 0, nil, err
	}
	found = []Found{FoundIn(j)}
	turns, err = j.Prune(context.Background())
	return turns, found, errors.Join(err, j.Close())
}
