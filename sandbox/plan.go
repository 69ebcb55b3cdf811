package sandbox

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/sandbox/internal/seccomp"
	"github.com/toolhost/toolhost/sandbox/internal/wire"
)

const (
	socketDir = "/run/toolhost"
	hostname  = "toolhost"
	// toolID is the user and group that a call believes to be.
	toolID = 1000
)

// Task holds what a plan needs to know about a call besides the policy.
type Task struct {
	// Programs are the call's executables, which it sees without a grant.
	Programs []Program
	// MemoryBytes and CPUPercent are the call's limits, 0 for none. The sizes of
	// its file systems, and what it reads about itself, depend on them.
	MemoryBytes, CPUPercent int64
	// OpenFiles is the limit of open files of one process; 0 is
	// DefaultOpenFiles.
	OpenFiles int64
	// ProcessBytes bounds the data of each process and Tasks the tasks of the
	// call's user, by rlimits; 0 means no bound. They are for calls without a cgroup.
	ProcessBytes, Tasks int64
	// TimerSlack is how late timers may fire, for a program that is woken very often;
	// 0 means the kernel's 50 µs.
	TimerSlack time.Duration
	Storage    Storage
	// Secrets are the call's secret files.
	Secrets []Secret
}

// Program is an executable: Source on the host, Target as the call sees it.
type Program struct{ Source, Target string }

// Storage bounds the files of a call, which count towards its memory. It does
// not bound a persistent workspace (Policy.Workspace). Zero fields mean a
// quarter (workspace), an eighth (/tmp) and a 32nd (/dev/shm) of the call's
// memory limit, or of 512 MiB without one. The sum must be less than half of
// that.
type Storage struct {
	WorkspaceBytes, TmpBytes, ShmBytes int64
	// WorkspaceInodes bounds the number of files, by default 65536; /tmp has a
	// quarter, /dev/shm a 64th of it.
	WorkspaceInodes int64
}

// Defaults of a Task.
const (
	DefaultOpenFiles       = 1024
	DefaultWorkspaceInodes = 64 << 10
	unlimitedMemory        = 512 << 20
)

// Fits returns an error if a call with this much memory, 0 without a limit, may not store s.
// A persistent workspace does not count.
func (s Storage) Fits(memory int64, persistent bool) error {
	_, err := s.complete(memory, persistent)
	return err
}

// Within returns s if it fits, else s with nothing larger than the default.
func (s Storage) Within(memory int64, persistent bool) Storage {
	if s.Fits(memory, persistent) == nil {
		return s
	}
	least, _ := Storage{}.complete(memory, persistent)
	s.WorkspaceBytes, s.TmpBytes, s.ShmBytes = min(s.WorkspaceBytes, least.WorkspaceBytes), min(s.TmpBytes, least.TmpBytes), min(s.ShmBytes, least.ShmBytes)
	return s
}

// complete fills in the defaults; persistent is the workspace.
func (s Storage) complete(memory int64, persistent bool) (Storage, error) {
	basis, bound := memory, memory/2
	if memory <= 0 { // whoever has no limit may choose
		basis, bound = unlimitedMemory, math.MaxInt64
	}
	for _, f := range []struct {
		v         *int64
		otherwise int64
	}{
		{&s.WorkspaceBytes, basis / 4},
		{&s.TmpBytes, basis / 8},
		{&s.ShmBytes, basis / 32},
		{&s.WorkspaceInodes, DefaultWorkspaceInodes},
	} {
		if *f.v < 0 {
			return s, fmt.Errorf("a storage limit of %d is negative: give bytes, or leave it out", *f.v)
		}
		if *f.v == 0 {
			*f.v = f.otherwise
		}
	}
	if persistent {
		s.WorkspaceBytes = 0
	}
	// Subtracted, for a sum of the largest numbers would be negative.
	if s.WorkspaceBytes > bound || s.TmpBytes > bound-s.WorkspaceBytes || s.ShmBytes > bound-s.WorkspaceBytes-s.TmpBytes {
		return s, fmt.Errorf("workspace %d, /tmp %d and /dev/shm %d bytes are together more than half of the memory limit of %d, to which they count: raise that limit or lower these", s.WorkspaceBytes, s.TmpBytes, s.ShmBytes, memory)
	}
	return s, nil
}

// Plan says how to start one call. It is immutable; making it has no effect on the
// system.
type Plan struct {
	flags   int64
	root    wire.Root
	stage   []wire.Stage
	confine bool
	user    bool // has a user namespace of its own
	shared  bool // acts as the caller
	receipt api.Receipt
	env     []string
	storage Storage
	// held are the open files of stage, and epoch that of the mounts that they were judged by.
	held  *held
	epoch uint64
	// lifetimes is TierNone's.
	lifetimes isolation
}

// Close closes the granted paths, after the starts in progress. A later start opens them
// again, and fails if a path leads to another file. Close may be called more than once.
func (p *Plan) Close() { p.held.close() }

// Receipt returns what the plan enforces; a start that cannot enforce all of it fails.
func (p *Plan) Receipt() api.Receipt {
	r := p.receipt
	r.Read, r.Write, r.Secrets = slices.Clone(r.Read), slices.Clone(r.Write), slices.Clone(r.Secrets)
	r.Grants = slices.Clone(r.Grants)
	r.Enforced, r.Degraded = slices.Clone(r.Enforced), slices.Clone(r.Degraded)
	return r
}

// Env returns the environment variables that the sandbox sets for the tool.
func (p *Plan) Env() []string { return slices.Clone(p.env) }

// Storage returns the bounds on the call's files; zero without a sandbox. If only
// those of the workspace are zero, it is persistent and not bounded.
func (p *Plan) Storage() Storage { return p.storage }

// Confined reports whether the tool sees a private file system instead of the host's.
func (p *Plan) Confined() bool { return p.confine }

// Hides reports whether a confined tool cannot see the host's path, and a grant
// could change that.
func (p *Plan) Hides(path string) bool {
	if !p.confine || !Showable(path) || Within(path, Workspace) {
		return false
	}
	shown := func(m wire.Mount) bool { return m.Kind != wire.MountTmpfs && Within(path, m.Target) }
	link := func(l wire.Link) bool { return Within(path, l.Path) }
	text := func(t wire.Text) bool { return path == t.Path }
	return !slices.ContainsFunc(p.root.Mounts, shown) && !slices.ContainsFunc(p.root.Links, link) && !slices.ContainsFunc(p.root.Files, text)
}

// SocketDir returns the folder, inside the sandbox, for a confined tool's socket.
func (p *Plan) SocketDir() string {
	if p.confine {
		return socketDir
	}
	return ""
}

// Plan plans how to enforce the policy on a host with these features. It has no
// effect on the system. The error is a *MissingError if the host lacks a feature
// that the policy needs, an *UnconfinedError if the policy's tier does.
func (r Resolved) Plan(f Features, t Task) (*Plan, error) {
	if r.policy.tier() == TierNone {
		return r.planNone(f, t)
	}
	storage, err := t.Storage.complete(t.MemoryBytes, r.workspace != "")
	if err != nil {
		return nil, err
	}
	if err := checkSecrets(t.Secrets); err != nil {
		return nil, err
	}
	p := &Plan{confine: true, user: true, flags: namespaces, storage: storage, held: r.held, epoch: r.epoch}
	if err := r.check(f, p); err != nil {
		return nil, err
	}
	p.describe(r, f)
	p.root = wire.Root{
		Bytes: rootBytes, Hostname: hostname, Loopback: true, CgroupNS: true,
		Masked: maskedPaths, ReadOnly: readOnlyPaths, Limits: f.rlimits(t),
		Landlock: int64(p.receipt.LandlockABI), Seccomp: int64(seccomp.Default), TimerSlackNS: t.TimerSlack.Nanoseconds(),
	}
	if r.policy.Strict {
		p.root.Seccomp, p.receipt.Strict = int64(seccomp.Strict), true
	}
	if r.policy.network() == NetworkHost {
		p.flags &^= unix.CLONE_NEWNET
		p.root.Loopback = false
	}
	if err := p.reach(r); err != nil {
		return nil, err
	}
	p.addMounts(r, f, t, storage)
	if err := p.hide(t.Secrets); err != nil {
		return nil, err
	}
	p.env = environment(t, f.processors)
	return p, nil
}

const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// check refuses what the host cannot do.
func (r Resolved) check(f Features, p *Plan) error {
	for _, u := range uses {
		found := f.find(u.feature)
		needed := r.needs(u.feature)
		if needed && u.feature == FeatureOwnUID {
			if err := r.checkUser(f, p); err != nil {
				return err
			}
			continue
		}
		if needed && found.State != Yes {
			return &MissingError{found}
		}
	}
	return nil
}

func (r Resolved) needs(feature string) bool {
	switch feature {
	case FeatureNetNS:
		return r.policy.network() != NetworkHost
	case FeatureLandlockScope: // nothing else keeps the host's abstract sockets away
		return slices.Contains(r.policy.Require, feature) ||
			r.policy.network() == NetworkHost && !slices.Contains(r.policy.Allow, feature)
	case FeatureLandlock:
		return slices.Contains(r.policy.Require, feature)
	}
	return true
}

// checkUser settles who the call is.
func (r Resolved) checkUser(f Features, p *Plan) error {
	found := f.find(FeatureOwnUID)
	if found.State == Yes && (f.root || len(r.grants) == 0 && r.workspace == "") {
		return nil
	}
	if found.State == Yes {
		found.State, found.Reason = No, "bound paths act with the invoking user's rights, which only root can lend to another user"
		found.Remedy = "allow " + SharedUID + ", grant no path, or run toolhost as root"
	}
	if f.root || !slices.Contains(r.policy.Allow, SharedUID) {
		return &MissingError{found}
	}
	p.shared = true
	p.receipt.Degraded = append(p.receipt.Degraded, api.Degradation{Feature: SharedUID, Reason: found.Reason, Remedy: found.Remedy})
	return nil
}

// describe writes the receipt.
func (p *Plan) describe(r Resolved, f Features) {
	rec := &p.receipt
	rec.Tier, rec.Network = TierNative, r.policy.network()
	rec.Read, rec.Write, rec.Data = []string{}, []string{}, r.workspace
	for _, g := range r.grants {
		if g.write {
			rec.Write = append(rec.Write, g.target)
		} else {
			rec.Read = append(rec.Read, g.target)
		}
	}
	if f.find(FeatureLandlock).State == Yes {
		rec.LandlockABI = f.landlock
	}
	rec.Enforced = []string{}
	for _, u := range uses {
		found := f.find(u.feature)
		switch {
		case u.feature == FeatureOwnUID && p.shared, u.feature == FeatureNetNS && !r.needs(u.feature):
		case found.State == Yes:
			rec.Enforced = append(rec.Enforced, u.feature)
		default:
			rec.Degraded = append(rec.Degraded, api.Degradation{Feature: u.feature, Reason: found.Reason, Remedy: found.Remedy})
		}
	}
	rec.Enforced = append(rec.Enforced, "rlimits", "lifeline", "timer", "session")
	if rec.Degraded == nil {
		rec.Degraded = []api.Degradation{}
	}
}

// Path is the search path of a confined tool.
const Path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environment tells a tool what it is given, since it can't see its cgroup.
func environment(t Task, processors int64) []string {
	env := []string{
		"PATH=" + Path,
		"HOME=" + Workspace, "USER=tool", "LOGNAME=tool",
	}
	if t.CPUPercent > 0 {
		quota := (t.CPUPercent + 99) / 100
		if processors > 0 {
			quota = min(quota, processors)
		}
		env = append(env, "GOMAXPROCS="+strconv.FormatInt(quota, 10))
	}
	if t.MemoryBytes > 0 {
		env = append(env, "GOMEMLIMIT="+strconv.FormatInt(t.MemoryBytes/10*9, 10))
	}
	return env
}
