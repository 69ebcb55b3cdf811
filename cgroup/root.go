package cgroup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"sync"

	"github.com/hashicorp/go-hclog"
)

// Options configure Open. The zero value is usable.
type Options struct {
	// Parent is a plain cgroup path ("/a/b") that exists in every hierarchy used and
	// that we may write to. Default: our own cgroup, or a delegated one.
	Parent string
	// Logger gets debug lines about the choices made. Default: none.
	Logger hclog.Logger

	ignoreUnified bool // for tests: act as if the host had no cgroup2 mount
}

// Root is our place in the cgroup tree: the directory that holds all groups.
// It is safe for concurrent use. Keep one per process.
type Root struct {
	log     hclog.Logger
	name    string
	path    string // in cgroup2, for people
	mode    Mode
	v2      *hierarchy
	limited map[string]*hierarchy // controller -> where it is
	v1      []*hierarchy
	unified *unified
	layout  layout
	events  *watcher
	oom     *oomParent // v1 only
	feat    features

	mu     sync.RWMutex // held for reading by every use of the directories
	closed bool

	all *bounds // of all groups

	sharesMu sync.Mutex
	shares   map[string]*shared // by their directories
}

// Open finds a base for our cgroups, makes a directory in it and locks it.
// On cgroup2 this may move this process, or all processes of a delegated
// cgroup, into a child toolhost-supervisor-<random>, and may ask systemd for a
// scope, which takes up to 5 s; ctx may shorten that. If the host lacks something,
// the error is an [UnavailableError].
func Open(ctx context.Context, o Options) (*Root, error) {
	o.Logger = cmp.Or(o.Logger, hclog.NewNullLogger())
	r := &Root{log: o.Logger, shares: map[string]*shared{}}
	r.all = newBounds(r, "", toolsWeight)
	if err := r.open(ctx, o); err != nil {
		return nil, errors.Join(err, r.release())
	}
	r.log.Debug("cgroups ready", "mode", r.mode, "path", r.Path(), "controllers", r.Controllers())
	return r, nil
}

func (r *Root) open(ctx context.Context, o Options) error {
	if err := checkParent(o.Parent); err != nil {
		return err
	}
	mounts, err := readMounts()
	if err != nil {
		return err
	}
	own, err := readMembership()
	if err != nil {
		return err
	}
	if r.unified, err = openUnified(mounts, own.v2, o.ignoreUnified); err != nil {
		return err
	}
	if r.v1, err = openV1(mounts, own, o.Parent); err != nil {
		return err
	}
	r.mode = r.chooseMode()
	if err := r.openV2(ctx, o); err != nil {
		return err
	}
	if err := r.makeDirectories(); err != nil {
		return err
	}
	return r.startEvents()
}

func (r *Root) chooseMode() Mode {
	switch {
	case len(r.v1) == 0:
		return ModeV2
	case r.unified.mnt != nil:
		return ModeV1
	}
	return ModeHybrid
}

// openV2 opens cgroup2's base and enables there what v1 doesn't serve.
func (r *Root) openV2(ctx context.Context, o Options) error {
	base, p, err := openBaseV2(ctx, r.unified, o, len(r.v1) > 0)
	if err != nil {
		return err
	}
	r.v2 = &hierarchy{version: 2, base: base, home: -1}
	var rest []string
	for _, c := range allControllers {
		if !slices.ContainsFunc(r.v1, func(h *hierarchy) bool { return slices.Contains(h.controllers, c) }) {
			rest = append(rest, c)
		}
	}
	r.v2.controllers, err = enableControllers(base, rest, p)
	if u, ok := errors.AsType[*UnavailableError](err); ok && len(r.v1) == 0 {
		return u
	}
	if err != nil { // limits that need them will be refused, with the remedy
		r.log.Debug("not all cgroup2 controllers could be enabled", "wanted", rest, "enabled", r.v2.controllers, "err", err)
	}
	return nil
}

// maxNameTries bounds the race with the sweeps of other toolhosts, which may take
// the new directory for a dead one's before we have locked it: each one that starts
// sweeps once, and dozens may start at once.
const maxNameTries = 100

func (r *Root) makeDirectories() error {
	var err error
	for range maxNameTries {
		r.name = fmt.Sprintf("%s%d-%s", toolsPrefix, os.Getpid(), randomHex())
		if err = r.makeAll(); err == nil {
			return r.setUp()
		}
		err = errors.Join(err, r.removeAll())
	}
	return &UnavailableError{"directory for tools", r.v2.base.join(r.name), placeRemedy(err), err}
}

func (r *Root) makeAll() error {
	for _, h := range r.hierarchies() {
		if err := h.makeTools(r.name); err != nil {
			return err
		}
	}
	return nil
}

// hierarchies lists cgroup2 first: groups are made in this order and removed
// in reverse.
func (r *Root) hierarchies() []*hierarchy {
	if r.v2 == nil {
		return r.v1
	}
	return append([]*hierarchy{r.v2}, r.v1...)
}

// setUp prepares our directory for groups: controllers, and a CPU weight.
func (r *Root) setUp() error {
	for _, c := range r.v2.controllers {
		if err := r.v2.tools.write("cgroup.subtree_control", "+"+c); err != nil {
			return unavailableV2(r.v2.tools.path, err)
		}
	}
	r.limited, r.layout = map[string]*hierarchy{}, layout{}
	for _, h := range r.hierarchies() {
		for _, c := range h.controllers {
			r.limited[c] = h
			r.layout[c] = controllerLayout{version: h.version, files: h.files}
		}
	}
	if !r.v2.files["cgroup.kill"] {
		return &UnavailableError{"cgroup2 file", r.v2.tools.join("cgroup.kill"), "use Linux 5.14 or newer", nil}
	}
	r.feat, r.path = r.probeFeatures(), r.v2.tools.path
	r.favourSupervisor()
	return r.apply("", r.layout.weight(r.all.weight))
}

// favourSupervisor gives a supervisor leaf that this process is in more of the CPU
// than tools have. Elsewhere the process has what its place in the tree gives it.
func (r *Root) favourSupervisor() {
	if !slices.Contains(r.v2.controllers, ctrlCPU) {
		return
	}
	own, err := readMembership()
	if err != nil || !leafName().MatchString(path.Base(own.v2)) {
		return
	}
	leaf, err := r.v2.base.sub(path.Base(own.v2))
	if err != nil {
		return
	}
	defer leaf.close()
	_ = leaf.write("cpu.weight", itoa(supervisorWeight))
}

func (r *Root) startEvents() (err error) {
	if r.events, err = newWatcher(); err != nil {
		return err
	}
	if h := r.limited[ctrlMemory]; h != nil && h.version == 1 {
		r.oom, err = newEventCounter(h.tools, "")
	}
	return err
}

// apply performs writes in our directory; prefix is "" or "c-name/".
func (r *Root) apply(prefix string, writes []write) error {
	for _, w := range writes {
		if err := r.limited[w.controller].apply(prefix, w); err != nil {
			return err
		}
	}
	return nil
}

// Mode returns the layout in use.
func (r *Root) Mode() Mode { return r.mode }

// Path returns our directory in cgroup2, for people: a mount may hide it.
func (r *Root) Path() string { return r.path }

// Controllers returns the controllers that limits can use, sorted, by v2 names
// (cpu, io, memory, pids).
func (r *Root) Controllers() []string { return slices.Sorted(maps.Keys(r.limited)) }

// plan checks limits and turns them into writes.
func (r *Root) plan(l Limits) ([]write, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	if l.MemoryBytes != 0 && r.feat.swapEscapes {
		return nil, missingFile(ctrlMemory, "MemoryBytes", "memory.swap.max or memory.memsw.limit_in_bytes",
			"boot with swapaccount=1, or turn swap off, or remove the limit")
	}
	return r.layout.plan(l)
}

// Close removes our directory and ends the event goroutine. Groups must be removed
// first; Close reports those that remain and leaves them to a later Sweep. This process
// stays in a supervisor leaf that Open moved it to. Close may be called more than once.
func (r *Root) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	r.all.end()
	r.closeShares()
	return r.release()
}

func (r *Root) release() error {
	var errs []error
	if r.events != nil {
		errs = append(errs, r.events.close())
	}
	if r.oom != nil {
		r.oom.close()
	}
	errs = append(errs, r.removeAll())
	for _, h := range r.hierarchies() {
		h.close()
	}
	if r.unified != nil {
		r.unified.close()
	}
	return errors.Join(errs...)
}

// removeAll removes our directory everywhere, before its lock is dropped.
func (r *Root) removeAll() error {
	var errs []error
	for _, h := range slices.Backward(r.hierarchies()) {
		if h.tools == nil {
			continue
		}
		if err := rmdirRetry(h.base, r.name); err != nil {
			errs = append(errs, err)
		}
		h.tools.close()
		h.tools = nil
	}
	return errors.Join(errs...)
}
