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

// Explanation is what a call would be given, without making it.
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
	// Description is what the tool says of itself and wishes for; nil for a
	// command. None of it is granted by being wished.
	Description *pluginv1.ToolDescription `json:"-"`
	Warnings    []string                  `json:"warnings"`
	// Prestart is how many processes wait for such calls; NotPrestarted is why none
	// can, whether that was asked for or not.
	Prestart      int    `json:"prestart"`
	NotPrestarted string `json:"notPrestarted,omitempty"`
}

// Explain prepares the call and returns what would be in force, without regard to its
// arguments. An error is the Refusal that the call would meet.
func (s *Supervisor) Explain(ctx context.Context, request Request) (*Explanation, error) {
	e, p, err := s.explain(ctx, request)
	p.Close()
	return e, err
}

// Check is for a call that another machine may make: it returns the result that the call
// would have here if it would be refused, else nil.
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
