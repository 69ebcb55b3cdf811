package sandbox

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/network"
	"github.com/toolhost/toolhost/sandbox/internal/lookup"
)

// Tiers of isolation.
const (
	// TierNative is a sandbox of namespaces, a separate user, a minimal read-only
	// root, a system call filter and Landlock. It is the default.
	TierNative = "native"
	// TierNone isolates lifetimes only, by a PID namespace, and a private /proc
	// and socket folder. Files, network and system calls are not restricted.
	TierNone = "none"
)

// Networks.
const (
	// NetworkNone is a private network namespace with a loopback interface only.
	NetworkNone = "none"
	// NetworkHost is the host's network, without its abstract unix sockets.
	NetworkHost = "host"
)

// SharedUID is the degradation in which a call runs as the calling user instead
// of a separate one. Other programs of that user, and other such calls, are then
// protected from it by all mechanisms but the user ID.
const SharedUID = "sharedUid"

// Policy says what a call may access. It is data, which this package never
// changes. The zero value grants nothing.
type Policy struct {
	// Tier is TierNative or TierNone; empty means TierNative.
	Tier string
	// Read and Write are granted files and folders of the host. The call sees
	// them under the same path, with the invoking user's rights, and files that
	// it creates there belong to that user. Relative paths are relative to the
	// working directory when the policy is resolved.
	Read, Write []string
	// Workspace is a folder of the host that becomes the call's workspace and
	// outlives it. If it is empty, the workspace is made for the call and
	// removed with it. The folder must belong to the caller and not be a
	// link; access is as for Write. No quota applies to it. Several calls may use
	// it at the same time; callers must lock it if they need to.
	Workspace string
	// Network is NetworkNone, NetworkHost or NetworkGrants. Empty means NetworkGrants
	// if there are Grants or AskNetwork is set, else NetworkNone.
	Network string
	// Grants are the names and addresses that the call may reach. They need a relay
	// outside: see Process.TakeSockets.
	Grants []network.Grant
	// AskNetwork makes the call's name server answer for every name, so that people
	// can be asked about a connection to a name that is not granted.
	AskNetwork bool
	// Strict also denies file locks, by which calls of several tenants could
	// signal to one another.
	Strict bool
	// Require names optional features without which the call must not run:
	// FeatureLandlock, FeatureLandlockScope.
	Require []string
	// Allow names degradations that are accepted: SharedUID, or
	// FeatureLandlockScope, without which the host's network includes the host's
	// abstract sockets. The call's receipt lists those that occurred.
	Allow []string
}

// degradations are those that can be allowed.
var degradations = []string{SharedUID, FeatureLandlockScope}

// grant is one bound path.
type grant struct {
	source, target string
	write          bool
}

func (p Policy) tier() string {
	if p.Tier == "" {
		return TierNative
	}
	return p.Tier
}

// Resolved is a policy whose names have been checked and whose paths are open, so
// that a call sees the files that were checked, wherever the paths lead later.
// Close it, or a Plan made from it, after the last start.
type Resolved struct {
	policy Policy
	grants []grant // parents before what is below them
	// workspace is the real path of Policy.Workspace, empty for none.
	workspace string
	held      *held
	masks     []mask
	// epoch is that of the host's mounts, as a Guard has judged it; 0 is unknown.
	epoch uint64
}

// Watched reports whether later changes of the host's mounts are noticed; they change Spec.Key.
func (r Resolved) Watched() bool { return r.epoch != 0 }

// Masked reports whether some of toolhost's own files lie below granted paths.
func (r Resolved) Masked() bool { return len(r.masks) > 0 }

// Close closes the granted paths, after the starts in progress. It may be called
// more than once.
func (r Resolved) Close() { r.held.close() }

// Check returns the error of Resolve, without keeping paths open.
func (p Policy) Check() error {
	r, err := p.Resolve()
	r.Close()
	return err
}

// Resolve checks a policy and opens its paths on the host. Errors name the
// entry, its value and the remedy.
func (p Policy) Resolve() (Resolved, error) {
	if err := p.check(); err != nil {
		return Resolved{}, err
	}
	if err := p.normalNetwork(); err != nil {
		return Resolved{}, err
	}
	p.Require, p.Allow = slices.Clone(p.Require), slices.Clone(p.Allow)
	r := Resolved{policy: p}
	if len(p.Read)+len(p.Write)+len(p.Workspace) == 0 {
		return r, nil
	}
	r.held = &held{files: map[string]*opened{}}
	if err := r.open(); err != nil {
		r.Close()
		return Resolved{}, err
	}
	slices.SortStableFunc(r.grants, func(a, b grant) int { return strings.Compare(a.target, b.target) })
	return r, nil
}

// open opens and judges what the policy names.
func (r *Resolved) open() error {
	j, err := newJudge()
	if err != nil {
		return err
	}
	r.held.mounts, r.held.marks = j.mounts, j.marks
	if r.policy.Workspace != "" {
		if r.workspace, err = r.openWorkspace(j); err != nil {
			return err
		}
	}
	for _, list := range []struct {
		paths []string
		write bool
	}{{r.policy.Read, false}, {r.policy.Write, true}} {
		for _, path := range list.paths {
			g, err := r.openGrant(j, path, list.write)
			if err != nil {
				return err
			}
			r.add(g)
		}
	}
	return nil
}

// add keeps one grant a path: that to write, if there is one.
func (r *Resolved) add(g grant) {
	for i := range r.grants {
		if r.grants[i].target == g.target {
			r.grants[i].write = r.grants[i].write || g.write
			return
		}
	}
	r.grants = append(r.grants, g)
}

// KeepsWorkspace reports whether the call's workspace is persistent.
func (r Resolved) KeepsWorkspace() bool { return r.policy.Workspace != "" }

// Confines reports whether the call will see a private file system instead of the host's.
func (r Resolved) Confines() bool { return r.policy.tier() != TierNone }

// Showable reports whether the host's path can be shown to a confined call: the
// sandbox does not use the path itself.
func Showable(path string) bool { return checkReserved(path) == nil }

// OwnFolder reports whether path is a folder that every confined call has.
func OwnFolder(path string) bool { return path == "/" || path == "/tmp" || path == Workspace }

// Warnings returns warnings for the policy's author: grants that are links, which
// another call may have made.
func (r Resolved) Warnings() (list []string) {
	for _, g := range r.grants {
		if g.source != g.target {
			list = append(list, fmt.Sprintf("the granted path %s is a link, or below one: the call sees %s", g.target, g.source))
		}
	}
	return list
}

// Covers reports whether the call will see the host's path.
func (r Resolved) Covers(path string) bool {
	return slices.ContainsFunc(r.grants, func(g grant) bool { return Within(path, g.target) })
}

// MayWrite reports whether the call may write to path.
func (r Resolved) MayWrite(path string) bool {
	return r.writes(path, func(real, source string) bool { return Within(real, source) })
}

// WritesBelow reports whether the call may write to a folder below path, at any
// depth.
func (r Resolved) WritesBelow(path string) bool {
	return r.writes(path, func(real, source string) bool { return Within(source, real) })
}

// KeepFrom returns an error if the call may write to, above or below one of the trusted
// paths, from which the host runs programs or reads its state.
func (r Resolved) KeepFrom(trusted []string) error {
	for _, path := range trusted {
		if r.MayWrite(path) || r.WritesBelow(path) {
			return fmt.Errorf("cannot grant writing to %s, which is toolhost's own, or to a folder around it: grant what is needed below or beside it", path)
		}
	}
	return nil
}

// writes compares the real path with all that the call may write to. Most calls may
// write to nothing of the host's, and then nothing is looked up.
func (r Resolved) writes(path string, match func(real, source string) bool) bool {
	sources := r.writable()
	if len(sources) == 0 {
		return false
	}
	real := lookup.Real(path)
	return slices.ContainsFunc(sources, func(source string) bool { return match(real, source) })
}

// writable are the real paths that the call may write to.
func (r Resolved) writable() (sources []string) {
	for source, write := range r.Sources() {
		if write {
			sources = append(sources, source)
		}
	}
	return sources
}

// Sources yields the real paths of the host's files that the call sees, and whether it may
// write there.
func (r Resolved) Sources() iter.Seq2[string, bool] {
	return func(yield func(string, bool) bool) {
		for _, g := range r.grants {
			if !yield(g.source, g.write) {
				return
			}
		}
		if r.workspace != "" {
			yield(r.workspace, true)
		}
	}
}

// Holds reports whether the call will see path as a folder because a granted path
// lies in it.
func (r Resolved) Holds(path string) bool {
	return slices.ContainsFunc(r.grants, func(g grant) bool { return Within(g.target, path) })
}

func (p Policy) check() error {
	for _, f := range []struct {
		name, value string
		allowed     []string
	}{{"tier", p.tier(), []string{TierNative, TierNone}}, {"network", p.network(), []string{NetworkNone, NetworkHost, NetworkGrants}}} {
		if !slices.Contains(f.allowed, f.value) {
			return fmt.Errorf("sandbox %s %q is unknown: must be one of %s", f.name, f.value, strings.Join(f.allowed, ", "))
		}
	}
	for _, name := range p.Allow {
		if !slices.Contains(degradations, name) {
			return fmt.Errorf("degradation %q is unknown: %s can be allowed", name, strings.Join(degradations, " and "))
		}
	}
	for _, name := range p.Require {
		if !slices.Contains(optionalFeatures, name) {
			return fmt.Errorf("feature %q cannot be required: must be one of %s", name, strings.Join(optionalFeatures, ", "))
		}
	}
	return nil
}

// withoutLinks replaces the root's own links, such as /bin, by what they name.
func withoutLinks(path string) string {
	first, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if to, err := os.Readlink("/" + first); err == nil && strings.HasPrefix(to, "usr/") {
		return filepath.Join("/", to, rest)
	}
	return path
}

// Real resolves all links in the existing part of an absolute path, whatever their owner.
func Real(path string) string { return lookup.Real(path) }

// Within reports whether path is dir or below it. Both must be absolute and clean, as by
// filepath.Clean.
func Within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
