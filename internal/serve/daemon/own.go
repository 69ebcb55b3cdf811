package daemon

import (
	"cmp"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolhost/toolhost/internal/journal/state"
	"github.com/toolhost/toolhost/internal/tools/config"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

// Own are the files of a program with this configuration and state folder that no
// tool may be granted: the state with its tokens and journals, also that of other
// programs of this user, sockets, keys and secrets, copies of tools, and the
// configuration, which may be read. It is the one list of them.
func Own(loaded *config.Loaded, dir string) sandbox.Own {
	folders := slices.Concat(loaded.Config.OwnDirs(), supervisor.Config{}.OwnDirs(), state.Protected(dir, loaded.State))
	own := sandbox.Own{Hidden: slices.Concat(folders, keys(loaded)), Made: slices.Concat(folders, loaded.Folders)}
	if socket, err := SocketPath(loaded.Daemon); err == nil {
		own.Hidden = append(own.Hidden, absolute(socket), absolute(socket)+".lock")
	}
	if credentials := os.Getenv("CREDENTIALS_DIRECTORY"); credentials != "" {
		own.Hidden = append(own.Hidden, absolute(credentials))
	}
	// The key of a fleet is made where it is missing, and so used as it is.
	own.Fixed = slices.Concat(loaded.Files, loaded.Sources, named(loaded.Fleet.Key, loaded.Fleet.CA, loaded.Telemetry.Syslog.CA, loaded.Config.SpillDir))
	if dir != "" {
		own.Data = filepath.Join(absolute(dir), "data")
	}
	own.Hidden, own.Fixed, own.Made = once(own.Hidden), once(own.Fixed), once(own.Made)
	return own
}

// once keeps each path once, in its place: all are looked at in calls.
func once(paths []string) (kept []string) {
	for _, path := range paths {
		if !slices.Contains(kept, path) {
			kept = append(kept, path)
		}
	}
	return kept
}

// keys are the files of secrets, keys and certificates.
func keys(loaded *config.Loaded) []string {
	files := named(loaded.Daemon.TLSCert, loaded.Daemon.TLSKey, loaded.Fleet.Cert, loaded.Fleet.CertKey, loaded.Fleet.Key)
	for _, secret := range loaded.Secrets {
		files = append(files, named(secret.File)...)
	}
	return files
}

// named leaves out what is not set.
func named(files ...string) []string {
	return slices.DeleteFunc(files, func(file string) bool { return file == "" })
}

func absolute(path string) string {
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}

// CheckGrants finds what a configuration grants of Own, and what is neither a file nor a
// folder. Paths that cannot be granted for another reason are the calls' to refuse: they may only be missing for now.
func CheckGrants(loaded *config.Loaded, dir string) error {
	return checkTools(loaded, dir, func(string) {})
}

// checkTools is CheckGrants, and says which tool it is at.
func checkTools(loaded *config.Loaded, dir string, at func(tool string)) error {
	var guard sandbox.Guard
	defer guard.Close()
	own := beforehand(loaded, dir)
	var problems config.Problems
	check := func(t config.Tool) {
		for _, err := range checkGrants(&guard, own, loaded.Config.OwnDirs(), t.Sandbox) {
			problems = append(problems, t.Problem(err))
		}
	}
	for _, t := range loaded.Tools {
		at(t.Name)
		check(t)
		for _, name := range slices.Sorted(maps.Keys(t.MCP.Tools)) {
			check(t.MCP.Tools[name])
		}
	}
	return problems.Err()
}

// CheckPolicy is CheckGrants for grants that are in no file.
func CheckPolicy(loaded *config.Loaded, dir string, policy sandbox.Policy) error {
	var guard sandbox.Guard
	defer guard.Close()
	return errors.Join(checkGrants(&guard, beforehand(loaded, dir), loaded.Config.OwnDirs(), policy)...)
}

// beforehand is Own before there are calls: the key of a fleet is made until then.
func beforehand(loaded *config.Loaded, dir string) sandbox.Own {
	own := Own(loaded, dir)
	own.Fixed = slices.DeleteFunc(own.Fixed, func(path string) bool { return path == loaded.Fleet.Key })
	return own
}

// checkGrants looks at each path by itself: one that is missing must not hide
// another.
func checkGrants(guard *sandbox.Guard, own sandbox.Own, trusted []string, policy sandbox.Policy) (errs []error) {
	for _, one := range singly(policy) {
		resolved, err := one.Resolve()
		if errors.Is(err, sandbox.ErrKind) {
			errs = append(errs, err)
		}
		if err != nil {
			continue
		}
		if err := cmp.Or(resolved.KeepFrom(trusted), guard.Judge(&resolved, own)); err != nil {
			errs = append(errs, err)
		}
		resolved.Close()
	}
	return errs
}

func singly(policy sandbox.Policy) (list []sandbox.Policy) {
	for _, path := range policy.Read {
		list = append(list, sandbox.Policy{Read: []string{path}})
	}
	for _, path := range policy.Write {
		list = append(list, sandbox.Policy{Write: []string{path}})
	}
	return list
}
