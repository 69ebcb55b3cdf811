package fleetops

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/fleet"
	"github.com/toolhost/toolhost/fleet/engine"
	"github.com/toolhost/toolhost/internal/cli/present"
	"github.com/toolhost/toolhost/internal/journal/state"
	"github.com/toolhost/toolhost/internal/tools/config"
)

// Parties are the daemon and the workers of a configured fleet, by their public keys.
type Parties struct {
	config.Fleet
	caller  string
	removed []string // workers whose keys were removed
}

// ReadParties reads them where a configuration says, which must have a fleet.
func ReadParties(loaded *config.Loaded) (Parties, error) {
	p := Parties{Fleet: loaded.Fleet}
	dir, err := state.Folder(loaded.State)
	if err != nil {
		return p, err
	}
	if p.caller, err = publicKey(p.Key, dir); err != nil {
		return p, err
	}
	_, p.removed, err = (&removals{dir: dir}).apply(p.Workers, hclog.NewNullLogger())
	return p, err
}

// Print lists the keys.
func (p Parties) Print(w io.Writer) error {
	rows := [][]string{{"PARTY", "KEY"}, {"daemon", p.caller}}
	for _, name := range slices.Sorted(maps.Keys(p.Workers)) {
		who := "worker " + name
		if slices.Contains(p.removed, name) {
			who += ", removed"
		}
		rows = append(rows, []string{who, p.Workers[name]})
	}
	return present.Table(w, rows, 0)
}

// NATSConfig is what a nats-server needs in its configuration to serve the fleet.
func (p Parties) NATSConfig() string {
	left := maps.Clone(p.Workers)
	for _, name := range p.removed {
		delete(left, name)
	}
	return engine.NATSConfig(p.caller, left)
}

// keyName is the caller's key in the state folder.
const keyName = "fleet.key"

// keyPath is the configured file, or else the one in the state folder.
func keyPath(path, state string) (string, error) {
	if path == "" && state == "" {
		return "", errors.New("the fleet needs a key that workers know the daemon by: name its file with fleet: {key: FILE}, or have a state folder")
	}
	return cmp.Or(path, filepath.Join(state, keyName)), nil
}

// callerKey reads the daemon's key, or makes the one in the state folder.
func callerKey(path, state string) (*fleet.Key, error) {
	own, err := keyPath(path, state)
	if err == nil && path == "" {
		err = MakeKey(own)
	}
	if err != nil {
		return nil, err
	}
	return fleet.ReadKey(own)
}

// publicKey is that of the daemon's key, which has to be there.
func publicKey(path, state string) (string, error) {
	own, err := keyPath(path, state)
	if err != nil {
		return "", err
	}
	key, err := fleet.ReadKey(own)
	if errors.Is(err, fs.ErrNotExist) && path == "" {
		err = fmt.Errorf("%w; the daemon makes it when it starts, or make one with toolhost fleet key and name it with fleet: {key: FILE}", err)
	}
	if err != nil {
		return "", err
	}
	return key.Public(), nil
}

// MakeKey makes a key where the file is missing.
func MakeKey(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	key, err := fleet.NewKey()
	if err != nil {
		return err
	}
	return key.WriteFile(path)
}

// CheckKeys finds keys and a certificate of a fleet with which the daemon does not start.
// Another user than the daemon's may not read them, and cannot tell.
func CheckKeys(loaded *config.Loaded) error {
	f, caller := loaded.Fleet, ""
	if !f.On() {
		return nil
	}
	var problems config.Problems
	check := func(path string, err error) {
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			problems = append(problems, loaded.Problem(path, err))
		}
	}
	if f.Key != "" {
		key, err := fleet.ReadKey(f.Key)
		if check("fleet.key", err); err == nil {
			caller = key.Public()
		}
	}
	worker, err := engine.CheckKeys(caller, f.Workers)
	check("fleet.workers."+worker, err)
	if f.Cert != "" {
		_, err := engine.ReadCertificate(f.Cert, f.CertKey, time.Now())
		check("fleet.cert", err)
	}
	return problems.Err()
}
