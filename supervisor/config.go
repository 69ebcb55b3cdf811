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

// Config configures a Supervisor. The zero value is usable.
type Config struct {
	// Limits are the limits of calls that set none; zero fields mean
	// DefaultLimits.
	Limits Limits
	// Totals bound all calls together; zero fields are unlimited.
	Totals cgroup.Limits
	// Admission bounds how many calls run and wait; zero fields mean two
	// running calls per CPU, 64 waiting, and a wait of 10 s.
	Admission Admission
	// Prestart bounds the processes that wait for calls; see Request.Prestart.
	Prestart PrestartBudget
	// Timeouts are the timeouts that the client (the program that makes the
	// calls) and the operator ask for; see budget.Resolve.
	Timeouts []budget.Ask
	// Profile is the timeout profile of calls; zero is the standard tool_call.
	Profile budget.Profile
	// Profiles are the operator's timeouts for other profiles, by name:
	// budget.MessageRoute bounds Describe, budget.Registration the time from a
	// tool's start to its answer. The supervisor does not use the others.
	Profiles map[string][]budget.Ask
	// Grace is the time between SIGTERM and SIGKILL, at most budget.MaxGrace;
	// zero means budget.DefaultGrace, and budget.NoGrace means none.
	Grace time.Duration
	// CgroupParent is the parent of the calls' cgroups: the same path in every
	// hierarchy, from its root. If it is empty, New chooses one.
	CgroupParent string
	// NoCgroup runs calls without cgroups, for users to whom none is delegated. A call
	// is then confined by its PID namespace, the launcher's timer and rlimits; see
	// docs/limits.md for what is lost. Calls without a sandbox are refused.
	// CgroupParent and Totals are ignored.
	NoCgroup bool
	// RuntimeDir holds the folders of the supervisor's sockets. Empty means
	// /run/toolhost for root, and $XDG_RUNTIME_DIR/toolhost or a folder in the
	// temporary directory for others. Its path must be short.
	RuntimeDir string
	// SpillDir gets the output that results cut, one file per stream; empty means none.
	// It is created if missing. Below a granted path calls can read it, but not write.
	SpillDir string
	// SpillTotalBytes bounds the files in SpillDir, each counted as at least 1 MiB: after
	// each call the oldest are removed. Zero means 4 GiB, negative unlimited.
	SpillTotalBytes int64
	// StoreDir holds a copy of each executable, which is hashed and run. Nobody
	// else may write to it, and it must not be mounted noexec. Empty means
	// /var/cache/toolhost/store for root, and a folder in the user's cache
	// directory for others.
	StoreDir string
	// Sandbox is the policy of calls that set none. The zero value is the native
	// tier with nothing granted.
	Sandbox Policy
	// Ceiling bounds the networks and the files of all calls.
	Ceiling Ceiling
	// DenyNetworks are networks to which no granted name may resolve, in addition to private
	// ones, the host's own and the like; for example, the operator's public addresses.
	DenyNetworks []netip.Prefix
	// Own returns the host program's own files besides StoreDir and RuntimeDir: its state,
	// sockets and configuration. It is called for each call, from any goroutine; nil means
	// none.
	Own func() sandbox.Own
	// Recall lets New reuse the result of an earlier trial call by the same user under the
	// same conditions (boot, kernel, rules, rights). The trial finds out what sandboxes can
	// enforce on this machine. It is for programs that make one call and exit: New takes two
	// thirds of the time.
	Recall bool
	// Adapter and AdapterArgs have no effect: plain commands need no other
	// program.
	//
	// Deprecated: leave them empty. They will be removed in the next release.
	Adapter     string
	AdapterArgs []string
	// Logger receives the log; nil discards it.
	Logger hclog.Logger
}

// Admission bounds how many calls run and wait for a slot, and how long they wait.
type Admission struct {
	Running, Queue int
	Wait           time.Duration
}

// leaveSlotFor is longer than most turns of a model, so that its next call finds a slot.
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

// minSpill is the least that a stream counts as in a spill folder.
const minSpill = 1 << 20

// makeSpillDir creates the spill folder, so that a wrong path fails before output is lost.
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

// OwnDirs returns the folders that a supervisor of this configuration uses itself.
func (c Config) OwnDirs() []string {
	return []string{cmp.Or(c.StoreDir, defaultStoreDir()), cmp.Or(c.RuntimeDir, defaultRuntimeDir())}
}
