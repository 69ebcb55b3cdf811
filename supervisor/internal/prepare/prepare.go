// Package prepare makes of a request all that can be decided before its call has a
// process: the executable, the sandbox's plan, limits, arguments and timeouts. It
// refuses requests that cannot be met.
package prepare

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/text"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor/internal/describe"
	"github.com/toolhost/toolhost/supervisor/internal/mask"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// maxArgumentBytes caps a call's arguments.
const maxArgumentBytes = 1 << 20

// Preparer is what a supervisor knows when it prepares calls. Its fields are set
// before the first one.
type Preparer struct {
	// Limits, Sandbox, Grace and the timeouts are those of requests that bring none.
	Limits   spec.Limits
	Sandbox  sandbox.Policy
	Profiles map[string][]budget.Ask
	Timeouts []budget.Ask
	Grace    time.Duration

	Binaries *Binaries
	// Features are those of the host's sandboxes at present.
	Features func() sandbox.Features
	// Describe gives what a binary says of itself.
	Describe func(context.Context, spec.Request, Binary) (*describe.Described, error)
	// RuntimeDir holds the sockets of calls.
	RuntimeDir string
	// Trusted are the supervisor's own folders, Own what else belongs to its program;
	// nil is nothing.
	Trusted []string
	Own     func() sandbox.Own
	// SpillDir is the folder that calls may read, but not write; empty means none.
	SpillDir string
	// Cgroup names the layout in use, Controllers what it can limit.
	Cgroup      string
	Controllers []string
	NoCgroup    bool
	// CheckPolicy refuses networks and files that are beyond what anybody may have, and
	// networks that cannot be served.
	CheckPolicy func(sandbox.Resolved) error

	guard sandbox.Guard
}

// Close ends what the Preparer watches.
func (p *Preparer) Close() { p.guard.Close() }

// Work is what a call is prepared for.
type Work int

// The kinds of work.
const (
	ForCall     Work = iota
	ForDescribe      // the tool is asked what it is, and granted nothing for that
	ForExplain       // nothing is to run, so there are no arguments
	ForAhead         // a process is started before there is a call
	ForOffer         // its secrets have not come: what would need them is left for its start
)

// preparation is one that is under way.
type preparation struct {
	*Preparer
	*Prepared
	hints []budget.Ask // the model's
	asks  bool         // they have a timeout
}

// Bare prepares a request before anything is known about its tool.
func (p *Preparer) Bare(request spec.Request) *Prepared {
	return &Prepared{
		Request: request, ID: cmp.Or(request.ID, rand.Text()), Label: request.ToolName(), Mask: &mask.Mask{},
		cgroup: p.Cgroup, controllers: p.Controllers, noCgroup: p.NoCgroup,
	}
}

// Prepare prepares a call, whose timeout has the profile. Of several mistakes the
// one of the earliest step is reported. An error is a Refusal; the Prepared is
// returned with it as far as it got, and must be closed, too.
func (p *Preparer) Prepare(ctx context.Context, request spec.Request, profile budget.Profile, work Work) (*Prepared, error) {
	return p.PrepareBeside(ctx, request, profile, work, func(*Prepared) {})
}

// PrepareBeside is Prepare; begin has what needs the call's limits alone made beside the
// rest of it.
func (p *Preparer) PrepareBeside(ctx context.Context, request spec.Request, profile budget.Profile, work Work, begin func(*Prepared)) (*Prepared, error) {
	n := preparation{Preparer: p, Prepared: p.Bare(request)}
	n.Work = work
	for _, step := range []func() error{
		n.checkWhere, n.checkTexts, n.bound, func() error { begin(n.Prepared); return nil }, n.checkKeep, n.checkSecrets, n.findBinary, n.surround, n.boundArguments,
		func() error { return n.checkTool(ctx) },
	} {
		if err := step(); err != nil {
			return n.Prepared, err
		}
	}
	n.settleTime(profile)
	return n.Prepared, nil
}

// checkWhere refuses a call that asks for a worker of a fleet: a fleet takes the labels
// off what its worker gets.
func (n *preparation) checkWhere() error {
	if len(n.Request.Where) == 0 || n.Describes() {
		return nil
	}
	return outcome.Refuse(api.StatusPolicyViolation, api.ReasonPolicy, fmt.Errorf("it is for a worker with %s, and there is no fleet here: have a daemon make the call that has fleet in its configuration (toolhost serve, toolhost call), or take where out of the tool's entry", text.Labels(n.Request.Where)))
}

// bound settles the limits, once for all that enforces or shows them.
func (n *preparation) bound() (err error) {
	if n.Bounds, err = n.Request.Limits.Over(n.Limits).Bounds(); err != nil {
		return outcome.Refuse(api.StatusStartFailed, api.ReasonLimits, err)
	}
	if err := checkShare(n.Request.Share, n.Request.Pool); err != nil {
		return outcome.Refuse(api.StatusStartFailed, api.ReasonLimits, err)
	}
	return n.boundWithoutCgroup()
}

// checkShare checks what bounds the call together with others.
func checkShare(share spec.Share, pool spec.Pool) error {
	if share.Running < 0 || share.Waiting < 0 {
		return fmt.Errorf("the share %q has negative bounds (running %d, waiting %d): give 1 or more, or 0 for none", share.Key, share.Running, share.Waiting)
	}
	if pool.Running < 0 {
		return fmt.Errorf("the pool %q has %d slots: give 1 or more, or 0 for no bound", pool.Name, pool.Running)
	}
	if err := share.Group().Limits.Validate(); err != nil {
		return fmt.Errorf("the limits of the share %q together: %w", share.Key, err)
	}
	return nil
}

// settleTime settles the timeout and the grace period.
func (n *preparation) settleTime(profile budget.Profile) {
	asks := append(n.Asks(n.Request), n.hints...)
	if n.Description != nil {
		asks = append(asks, toolHint(n.Description))
	}
	n.Timeout = budget.Resolve(profile, asks...)
	n.StartTimeout = n.Preparer.Operation(budget.Registration, n.Request).Timeout
	grace, warnings := budget.Grace(cmp.Or(n.Request.Grace, n.Preparer.Grace))
	n.Prepared.Grace = grace
	n.Warnings = slices.Concat(n.Warnings, n.Timeout.Warnings, warnings)
	n.Settings = append(n.Timeout.Settings, warnings...)
	if !n.asks {
		n.Settings = append(n.Timeout.Warnings, warnings...)
	}
}

// Operation is the timeout of an operation of toolhost's own, by a standard profile.
func (p *Preparer) Operation(name string, request spec.Request) budget.Resolution {
	profile, _ := budget.Standard(name)
	return budget.Resolve(profile, slices.Concat(p.Profiles[profile.Name], request.Profiles[profile.Name])...)
}

// Asks are those of client, operator and request.
func (p *Preparer) Asks(request spec.Request) []budget.Ask {
	asks := slices.Concat(p.Timeouts, request.Timeouts)
	if request.Timeout != 0 {
		asks = append(asks, budget.Ask{Layer: budget.LayerCall, Timeout: request.Timeout})
	}
	return asks
}

// checkKeep refuses what cannot be kept.
func (n *preparation) checkKeep() error {
	keep, problem := n.Request.Keep, checkPrestart(n.Request)
	switch {
	case problem != "":
	case keep == nil:
		return nil
	case n.Request.Command != nil:
		problem = "a plain command ends with its call: leave out Keep"
	case n.Request.FilesTo != "":
		problem = "a kept process keeps its workspace: leave out Keep, or the folder for its files"
	case keep.Idle < 0 || keep.MaxCalls < 0:
		problem = fmt.Sprintf("a negative limit of a kept process (idle %s, %d calls): leave it out, or make it positive", keep.Idle, keep.MaxCalls)
	default:
		return nil
	}
	return outcome.Refuse(api.StatusStartFailed, api.ReasonKeep, errors.New(problem))
}

func (n *preparation) findBinary() error {
	if n.Request.Command != nil { // placeCommand finds it
		if len(n.Request.Command.Argv) == 0 {
			return outcome.Refuse(api.StatusStartFailed, api.ReasonCommand, errors.New("no command given"))
		}
		return nil
	}
	found, err := n.Binaries.Find(n.Request.Tool.Path)
	if err != nil {
		return err
	}
	n.Binary = found
	return found.Check(n.Request.SHA256)
}

// Check refuses a binary that is not the one that was allowed; "" allows any.
func (b Binary) Check(sha256 string) error {
	if sha256 == "" || strings.EqualFold(sha256, b.SHA256) {
		return nil
	}
	return outcome.Refuse(api.StatusPolicyViolation, api.ReasonSHA256, wrongHash(b, sha256))
}
