package supervisor

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/sandbox/export"
	"github.com/toolhost/toolhost/supervisor/internal/admission"
)

// Config of a Supervisor. The zero value works.
type Config struct {
	// Limits for calls that bring none of their own; zero fields mean
	// DefaultLimits.
	Limits Limits
	// Totals bound all calls together; zero fields are unlimited.
	Totals cgroup.Limits
	// Admission bounds how many calls run and wait; zero fields mean two
	// running calls per CPU, 64 waiting, and a wait of 10 s.
	Admission Admission
	// Prestart bounds the processes that wait for calls; see Request.Prestart.
	Prestart PrestartBudget
	// Timeouts are what the client (the program that makes the calls) and the
	// operator ask for; see budget.Resolve.
	Timeouts []budget.Ask
	// Profile is the timeout profile of calls; zero is the standard tool_call.
	Profile budget.Profile
	// Profiles are what the operator asks for of other timeout profiles, by name:
	// budget.MessageRoute bounds Describe, budget.Registration the time from a
	// tool's start to its answer. The others are not the supervisor's.
	Profiles map[string][]budget.Ask
	// Grace is the time between SIGTERM and SIGKILL; zero is
	// budget.DefaultGrace, budget.NoGrace none. At most budget.MaxGrace.
	Grace time.Duration
	// CgroupParent is the cgroup below which calls are made, the same path in
	// every hierarchy, from its root; empty finds a place of its own.
	CgroupParent string
	// NoCgroup does without cgroups, for users to whom none is delegated. What
	// holds a call then is its PID namespace, the launcher's timer and rlimits; see
	// docs/limits.md for what is lost. Calls without a sandbox are refused. CgroupParent and
	// Totals then say nothing.
	NoCgroup bool
	// RuntimeDir holds the supervisor's sockets folders; empty is
	// /run/toolhost for root, $XDG_RUNTIME_DIR/toolhost or a folder in the
	// temporary directory for others. Its path must be short.
	RuntimeDir string
	// SpillDir takes output that is cut, one file a stream; empty means none. It is
	// made if it is missing. Below a grant calls can read it, but not write.
	SpillDir string
	// SpillTotalBytes bounds what is in SpillDir, each file counted as 1 MiB or more: after
	// a call the oldest files go. Zero is 4 GiB, negative any size.
	SpillTotalBytes int64
	// StoreDir takes a copy of each executable, which is what is hashed and
	// run; nobody else may write to it, and programs must be executable there.
	// Empty is /var/cache/toolhost/store for root, a folder in the user's
	// cache directory for others.
	StoreDir string
	// Sandbox is the policy of calls that bring none of their own. The zero
	// value is the native tier with nothing granted.
	Sandbox Policy
	// Ceiling bounds the networks and the files of all calls.
	Ceiling Ceiling
	// DenyNetworks are networks that no granted name may resolve to, in addition to private
	// ones, the host's own and the like: an operator's public addresses, for example.
	DenyNetworks []netip.Prefix
	// Own returns what else belongs to the host program, beside StoreDir and RuntimeDir: its
	// state, sockets and configuration. It is called for each call; nil means nothing. It
	// may be called from any goroutine.
	Own func() sandbox.Own
	// Recall lets New use the result of an earlier trial call, which finds out what this
	// machine's sandboxes can enforce, if a supervisor of this user has made one in the same
	// circumstances (boot, kernel, rules, rights). It is for programs that make one call and
	// end: New takes two thirds of the time.
	Recall bool
	// Adapter and AdapterArgs are without effect: plain commands need no other
	// program.
	//
	// Deprecated: leave them empty. They go with the next release.
	Adapter     string
	AdapterArgs []string
	// Logger is silent if nil.
	Logger hclog.Logger
}

// Admission bounds how many calls run and wait.
type Admission struct {
	Running, Queue int
	Wait           time.Duration
}

// leaveSlotFor is longer than a model's turn mostly takes: its next call finds a slot.
const leaveSlotFor = 10 * time.Second

// headStart is long enough for a process to start on a slow machine.
const headStart = time.Second / 2

// Slots returns how many calls run at once, with the default for zero.
func (a Admission) Slots() int { return a.limits().Running }

// Line returns how many calls wait at most, and for how long, with the defaults for zero.
func (a Admission) Line() (places int, wait time.Duration) {
	l := a.limits()
	return l.Queue, l.Wait
}

func (a Admission) limits() admission.Limits {
	return admission.Limits{
		Running: cmp.Or(a.Running, 2*runtime.NumCPU()), Queue: cmp.Or(a.Queue, 64), Wait: cmp.Or(a.Wait, 10*time.Second),
		LeaveFor: leaveSlotFor, HeadStart: headStart,
	}
}

// completePrestart fills in the defaults.
func (c *Config) completePrestart() error {
	b := &c.Prestart
	if b.MemoryBytes < 0 {
		return fmt.Errorf("prestart: memory %d is negative: give bytes, or 0 for 512 MiB", b.MemoryBytes)
	}
	b.Processes = cmp.Or(b.Processes, max(minPrestarted, 2*runtime.NumCPU()))
	if b.MemoryBytes == 0 {
		b.MemoryBytes = 512 << 20
		if total := c.Totals.MemoryBytes; total > 0 {
			b.MemoryBytes = min(b.MemoryBytes, total/4)
		}
	}
	return nil
}

const minPrestarted = 4

func (a Admission) validate() error {
	switch {
	case a.Running < 0:
		return fmt.Errorf("admission: running %d is negative: give 1 or more, or 0 for two per CPU", a.Running)
	case a.Queue < 0:
		return fmt.Errorf("admission: queue %d is negative: give 1 or more, or 0 for 64", a.Queue)
	case a.Wait < 0:
		return fmt.Errorf("admission: wait %s is negative: give a positive duration, or 0 for 10s", a.Wait)
	}
	return nil
}

func (c *Config) complete() error {
	if err := errors.Join(c.Admission.validate(), c.completePrestart(), c.Ceiling.complete()); err != nil {
		return err
	}
	c.Limits = c.Limits.Over(DefaultLimits())
	if err := c.Limits.Validate(); err != nil {
		return err
	}
	if c.Profile.Name == "" {
		c.Profile, _ = budget.Standard(budget.ToolCall)
	}
	c.Logger = cmp.Or(c.Logger, hclog.NewNullLogger())
	c.RuntimeDir = cmp.Or(c.RuntimeDir, defaultRuntimeDir())
	c.StoreDir = cmp.Or(c.StoreDir, defaultStoreDir())
	return c.makeSpillDir()
}

// minSpill is what a stream has in a spill folder at least.
const minSpill = 1 << 20

// makeSpillDir makes the spill folder, so that a wrong path is an error before output is
// lost.
func (c *Config) makeSpillDir() error {
	if c.SpillDir == "" {
		return nil
	}
	c.SpillTotalBytes = cmp.Or(c.SpillTotalBytes, 4<<30)
	if least := int64(2 * minSpill); c.SpillTotalBytes > 0 && c.SpillTotalBytes < least {
		return fmt.Errorf("spill folder: %d bytes are too few for the two streams of a call: give %d or more", c.SpillTotalBytes, least)
	}
	var err error
	if c.SpillDir, err = filepath.Abs(c.SpillDir); err != nil {
		return fmt.Errorf("spill folder: %w", err)
	}
	folder, err := export.Open(c.SpillDir)
	if err != nil {
		return fmt.Errorf("spill folder: %w; name another", err)
	}
	return folder.Close()
}

func defaultRuntimeDir() string {
	if os.Geteuid() == 0 {
		return "/run/toolhost"
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "toolhost")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("toolhost-%d", os.Geteuid()))
}

func defaultStoreDir() string {
	if os.Geteuid() == 0 {
		return "/var/cache/toolhost/store"
	}
	if dir, err := os.UserCacheDir(); err == nil {
		return filepath.Join(dir, "toolhost", "store")
	}
	return filepath.Join(defaultRuntimeDir(), "store")
}

// OwnDirs are the folders that a supervisor of this configuration uses itself.
func (c Config) OwnDirs() []string {
	return []string{cmp.Or(c.StoreDir, defaultStoreDir()), cmp.Or(c.RuntimeDir, defaultRuntimeDir())}
}
