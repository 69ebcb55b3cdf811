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
	// TierNative is a sandbox of namespaces, an own user, a minimal read-only
	// root, a system call filter and Landlock. It is the default.
	TierNative = "native"
	// TierNone isolates lifetimes only: a PID namespace, a private /proc and
	// socket folder. Files, network and system calls are the caller's own.
	TierNone = "none"
)

// Networks.
const (
	// NetworkNone leaves nothing but a loopback interface of the call's own.
	NetworkNone = "none"
	// NetworkHost is the host's network, but never its abstract sockets.
	NetworkHost = "host"
)

// SharedUID is the degradation in which a call acts as the calling user
// instead of as a user of its own: other programs of that user, and other such
// calls, are then protected from it by everything but the user id.
const SharedUID = "sharedUid"

// Policy says what a call may touch. It is data, never changed by this
// package; the zero value grants nothing.
type Policy struct {
	// Tier is TierNative, also if empty, or TierNone.
	Tier string
	// Read and Write are bound paths: files and folders of the host that the
	// call sees under the same path, acting with the invoking user's rights.
	// What it makes there belongs to that user. Relative paths are taken from
	// the working directory when the policy is resolved.
	Read, Write []string
	// Workspace is a folder of the host's that becomes the call's workspace
	// and stays after it; empty is a workspace of the call's own, which goes
	// with it. It must be a real folder (no link) and belong to the caller; the
	// call acts in it as on Write. No quota applies to it. Calls may share it
	// at the same time: who needs it alone sees to that.
	Workspace string
	// Network is NetworkNone, NetworkHost or NetworkGrants; empty is NetworkGrants
	// where there are Grants or AskNetwork is set, else NetworkNone.
	Network string
	// Grants are what the call may reach by name or address. They need a relay
	// outside: see Process.TakeSockets.
	Grants []network.Grant
	// AskNetwork has the call's own name server answer for every name, so that
	// people can be asked about a connection to one that is not granted.
	AskNetwork bool
	// Strict also refuses file locks, by which calls of several tenants could
	// signal to one another.
	Strict bool
	// Require names features without which the call must not run, although the
	// tier could do without: FeatureLandlock, FeatureLandlockScope.
	Require []string
	// Allow names degradations that may happen: SharedUID, or
	// FeatureLandlockScope, without which the host's network brings the host's
	// abstract sockets. Each is in the receipt of a call that it happened to.
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

// Resolved is a policy whose names have been checked and whose paths are open:
// a call sees what was judged, wherever the paths lead by then. Close it, or a
// Plan made of it, when no start is to come.
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

// Watched says whether a later change of the host's mounts is noticed: Spec.Key then differs.
func (r Resolved) Watched() bool { return r.epoch != 0 }

// Masked says whether something of toolhost's own lies in what is granted.
func (r Resolved) Masked() bool { return len(r.masks) > 0 }

// Close closes the granted paths, after the starts that are under way. It may be
// called again.
func (r Resolved) Close() { r.held.close() }

// Check is Resolve for those who only want to know.
func (p Policy) Check() error {
	r, err := p.Resolve()
	r.Close()
	return err
}

// Resolve checks a policy and opens its paths on the host. Errors name the
// entry, its value and what would be right.
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

// KeepsWorkspace says whether the call's workspace was there before it, and stays.
func (r Resolved) KeepsWorkspace() bool { return r.policy.Workspace != "" }

// Confines says whether the call will see files of its own only.
func (r Resolved) Confines() bool { return r.policy.tier() != TierNone }

// Showable says whether a confined call can see something of the host's at
// this path, which the sandbox has not for itself.
func Showable(path string) bool { return checkReserved(path) == nil }

// OwnFolder says whether path is a folder that every confined call has.
func OwnFolder(path string) bool { return path == "/" || path == "/tmp" || path == Workspace }

// Warnings returns what the policy's author may not know: grants that are
// links, which another call may have made.
func (r Resolved) Warnings() (list []string) {
	for _, g := range r.grants {
		if g.source != g.target {
			list = append(list, fmt.Sprintf("the granted path %s is a link, or below one: the call sees %s", g.target, g.source))
		}
	}
	return list
}

// Covers says whether path is one that the call will see of the host's.
func (r Resolved) Covers(path string) bool {
	return slices.ContainsFunc(r.grants, func(g grant) bool { return Within(path, g.target) })
}

// MayWrite says whether the call may write at path.
func (r Resolved) MayWrite(path string) bool {
	return r.writes(path, func(real, source string) bool { return Within(real, source) })
}

// WritesBelow says whether a folder that the call may write to lies in path, at
// any depth.
func (r Resolved) WritesBelow(path string) bool {
	return r.writes(path, func(real, source string) bool { return Within(source, real) })
}

// KeepFrom refuses writing to folders which others are executed, or trusted, by.
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

// Sources are the real paths of what the call sees of the host's files, and whether it may
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

// Holds says whether the call will see path as a folder, because something
// granted is in it.
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

// Real follows all links in what exists of an absolute path, whatever their owner.
func Real(path string) string { return lookup.Real(path) }

// Within says whether path is dir or below it. Both are absolute and clean, as filepath.Clean
// has them.
func Within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
