package supervisor

import (
	"context"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor/internal/call"
	"github.com/toolhost/toolhost/supervisor/internal/prepare"
)

// Explanation describes the call that a request would make.
type Explanation struct {
	Tool   string `json:"tool"`
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
	// Dir is the working directory as the tool would see it.
	Dir     string            `json:"dir"`
	Timeout budget.Resolution `json:"-"`
	Grace   time.Duration     `json:"-"`
	Limits  api.AppliedLimits `json:"limits"`
	Sandbox api.Receipt       `json:"sandbox"`
	// Description is the tool's description, with what it wishes for; nil for
	// a command. A wish grants nothing.
	Description *pluginv1.ToolDescription `json:"-"`
	Warnings    []string                  `json:"warnings"`
	// Prestart is how many processes are to wait for such calls; NotPrestarted says
	// why none can, whether or not that was requested.
	Prestart      int    `json:"prestart"`
	NotPrestarted string `json:"notPrestarted,omitempty"`
}

// Explain prepares a call and returns what would be in force, but does not check its
// arguments. The error is the Refusal that the call would get.
func (s *Supervisor) Explain(ctx context.Context, request Request) (*Explanation, error) {
	e, p, err := s.explain(ctx, request)
	p.Close()
	return e, err
}

// Check checks a call that another machine may make. It returns nil, or the result of the
// refusal that the call would get here.
func (s *Supervisor) Check(ctx context.Context, request Request) (refused *api.Result) {
	request.Events = nil
	_, p, err := s.explain(ctx, request)
	if err == nil {
		p.Close()
		return nil
	}
	c := call.New(p, (&caller{s: s, p: p}).base())
	c.Refuse(err)
	return c.Result()
}

func (s *Supervisor) explain(ctx context.Context, request Request) (*Explanation, *prepare.Prepared, error) {
	request.Arguments = nil
	p, err := s.preparer.Prepare(ctx, request, s.config.Profile, prepare.ForExplain)
	if err != nil {
		return nil, p, err
	}
	why := p.NotAhead()
	if why == "" && s.config.Prestart.Processes < 0 {
		why = "no processes wait for calls here"
	}
	return &Explanation{
		Prestart: p.Request.Prestart, NotPrestarted: why,
		Tool: p.Label, Path: p.Binary.Path, SHA256: p.SHA256(), Dir: p.Dir,
		Timeout: p.Timeout, Grace: p.Grace, Limits: p.AppliedLimits(), Sandbox: p.Receipt(),
		Description: p.Description, Warnings: append(append([]string{}, p.Warnings...), p.Policy.NetworkWarnings()...),
	}, p, nil
}
