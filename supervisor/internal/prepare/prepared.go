package prepare

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/cgroup"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor/internal/mask"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// Prepared is a request that can be run. It stays as it is; only the Mask may be given more
// to hide at any time. It must be closed.
type Prepared struct {
	// Request has its command made of the arguments, where it is a CommandTool's.
	Request spec.Request
	ID      string
	Label   string // what events and the result call the tool
	Work    Work

	Bounds  spec.Bounds
	Binary  Binary
	command Binary // a command's own, where a path or hash names it
	Plan    *sandbox.Plan
	Policy  sandbox.Resolved
	// Path is the plugin's executable, Dir the working directory, as the tool
	// sees them.
	Path, Dir string
	FilesTo   *os.Root // where the workspace's files go; nil for nowhere
	Service   *Service // nil where the tool has nothing to ask of its host

	Description *pluginv1.ToolDescription // nil for a plain command, and a Describe
	Arguments   []byte
	Reader      spec.OutputReader // of a command's stdout; used by the one goroutine that reads that
	Mask        *mask.Mask

	Timeout budget.Resolution
	// StartTimeout is how long the tool may take until it answers.
	StartTimeout, Grace time.Duration
	// Warnings are the result's, Settings those that are for the operator.
	Warnings, Settings []string

	cgroup      string
	controllers []string
	noCgroup    bool
}

// Close gives back what the preparation opened. It may be called again.
func (p *Prepared) Close() {
	p.Policy.Close()
	p.Service.Close()
	if p.FilesTo != nil {
		_ = p.FilesTo.Close()
	}
}

// With is the same call with another request, which differs in what nothing was decided by:
// Meta, Events, Ask and Lease. It takes the place of this one.
func (p *Prepared) With(request spec.Request) *Prepared {
	with := *p
	with.Request = request
	return &with
}

// CommandTool is nil for a plugin and for a plain command.
func (p *Prepared) CommandTool() *spec.CommandTool {
	if p.Request.Command == nil {
		return nil
	}
	return p.Request.Command.Tool
}

// Describes says that the work is Describe.
func (p *Prepared) Describes() bool { return p.Work == ForDescribe }

// Outlasts says that the process is not for the time of one call only.
func (p *Prepared) Outlasts() bool { return p.Request.Keep != nil || p.Work == ForAhead }

// SHA256 is that of what is executed.
func (p *Prepared) SHA256() string {
	if p.Request.Command != nil {
		return p.command.SHA256
	}
	return p.Binary.SHA256
}

// Args are what follows the executable's name in its argument vector.
func (p *Prepared) Args() []string {
	if p.Request.Command != nil {
		return append([]string{sandbox.CommandMode}, p.Argv()...)
	}
	return p.Request.Tool.Args
}

// Argv is a command's own argument vector, with the path that it was found at.
func (p *Prepared) Argv() []string {
	argv := slices.Clone(p.Request.Command.Argv)
	switch {
	case p.command.Path == "":
	case p.Plan.Confined() || p.command.Stored == "":
		argv[0] = p.command.Path
	default:
		argv[0] = p.command.Stored
	}
	return argv
}

// ShownPath is the tool's own name for itself.
func (p *Prepared) ShownPath() string {
	switch {
	case p.Request.Command != nil:
		return "toolhost-adapter"
	case p.Plan.Confined():
		return p.Path
	}
	return p.Binary.Path
}

// GroupLimits are those of the call's cgroup: what toolhost itself runs in it comes
// on top of the tool's own.
func (p *Prepared) GroupLimits() cgroup.Limits {
	if p.noCgroup {
		return cgroup.Limits{}
	}
	return p.treeLimits()
}

// treeLimits are GroupLimits, whatever is to enforce them.
func (p *Prepared) treeLimits() cgroup.Limits {
	limits := p.Bounds.Group()
	if limits.Pids > 0 {
		limits.Pids += p.adapterTasks()
	}
	return limits
}

// TaskLimit is the limit of the tool's own tasks where a cgroup is to enforce it;
// 0 means unlimited.
func (p *Prepared) TaskLimit() int64 {
	if p.noCgroup {
		return 0
	}
	return p.Bounds.Pids
}

// adapterTasks bounds the tasks of what toolhost itself runs below the launcher:
// the command adapter has one thread, that of MCP servers some 13 (shield.Prepare).
func (p *Prepared) adapterTasks() int64 {
	switch {
	case p.Request.Command != nil:
		return 1
	case p.Request.Tool.Adapter:
		return 16
	}
	return 0
}

// Adapted says whether the tool is what an adapter of toolhost's own will run.
func (p *Prepared) Adapted() bool { return p.Request.Command != nil || p.Request.Tool.Adapter }

// Timer is when the launcher ends the tree by itself, of a call that has so much
// time left; 0 is never.
func (p *Prepared) Timer(left time.Duration) time.Duration {
	if p.Timeout.Timeout == budget.Infinite {
		return 0
	}
	return budget.AnswerWithin(left, p.Grace)
}

// enoughFiles are for the sandbox of any call. Measured: a plugin's takes 8, a command's 11.
const enoughFiles = 16

// Explain names the limit, the grant or the executable in what the launcher reported.
func (p *Prepared) Explain(err error) error {
	var setup *sandbox.SetupError
	switch {
	case !errors.As(err, &setup) || sandbox.OfTheHost(err):
		return err
	case setup.TooFewFiles():
		return outcome.Refuse(api.StatusStartFailed, api.ReasonLimits, fmt.Errorf("limit openFiles: %d are too few for its sandbox: give %d or more", p.Bounds.OpenFiles, enoughFiles))
	case !setup.Executing(): // so what the call is granted
		return outcome.Refuse(api.StatusStartFailed, api.ReasonPolicy, err)
	}
	why := setup.Err
	switch setup.Err {
	case syscall.ENOEXEC:
		why = errors.New("it is neither a program of this machine nor a script with #!: build it for this architecture")
	case syscall.ENOENT:
		why = fmt.Errorf("its interpreter or the working directory %q does not exist: install it below /usr, or grant the call to read it", p.Dir)
	case syscall.E2BIG:
		why = ErrTooLong
	}
	return outcome.Refuse(api.StatusStartFailed, api.ReasonNotExecutable, fmt.Errorf("cannot execute %s: %w", p.program(), why))
}

// program is what people know it by that is executed.
func (p *Prepared) program() string {
	if p.Request.Command != nil {
		return p.Argv()[0]
	}
	return p.Binary.Path
}

// ErrTooLong is the kernel's word on arguments and environment (execve(2)), with the remedy.
var ErrTooLong = errors.New("argument list too long: one argument or variable may have 131071 bytes, and all together about 2 MiB: hand over what is longer on stdin, or in a file")

// CallRequest is what a plugin is asked; left is its time, and no bound where it is 0.
func (p *Prepared) CallRequest(left time.Duration) *pluginv1.CallRequest {
	request := &pluginv1.CallRequest{CallId: p.ID, Tool: p.toolName(), Method: p.Request.Method, Client: p.Request.Client, Rounds: p.Request.Rounds}
	if p.Request.Command != nil { // all else is in its arguments and environment
		return request
	}
	request.Arguments, request.Meta, request.Place = p.Arguments, p.Request.Meta, p.place()
	request.TimeoutNs, request.SoftBudgetNs = int64(left), int64(p.Timeout.SoftBudget)
	return request
}

// adapterTool is the one tool of the command adapter.
const adapterTool = "command"

func (p *Prepared) toolName() string {
	if p.Request.Command != nil {
		return adapterTool
	}
	if p.Description != nil {
		return p.Description.GetName()
	}
	return p.Request.Tool.Name
}

// HasOutputSchema says whether the tool declares an output schema.
func (p *Prepared) HasOutputSchema() bool {
	if tool := p.CommandTool(); tool != nil {
		return len(tool.Description().GetOutputSchema()) > 0
	}
	return len(p.Description.GetOutputSchema()) > 0
}

// Terms are those on which advice depends; silence is what an idle timeout allowed.
func (p *Prepared) Terms(silence time.Duration) outcome.Terms {
	tool := p.Request.Tool
	return outcome.Terms{
		ReadOnly: tool.ReadOnly, Idempotent: tool.Idempotent, Adapter: tool.Adapter, Command: p.Request.Command != nil,
		Timeout: p.Timeout.Timeout, Max: p.Timeout.Max, AsksTime: p.Description.GetTimeoutArgument() != "", Silence: silence,
	}
}
