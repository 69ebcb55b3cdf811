package supervisor

import (
	"context"
	"errors"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
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
}

// Explain prepares the call and tells what would be in force. Its arguments
// are not looked at. An error is that of the refusal which the call would meet.
func (s *Supervisor) Explain(ctx context.Context, request Request) (*Explanation, error) {
	request.Arguments = nil
	c := s.newCall(request)
	c.explains = true
	defer c.closeFilesTo()
	defer c.policy.Close()
	if err := c.prepare(ctx); err != nil {
		var refused *outcome.Refusal
		if errors.As(err, &refused) {
			return nil, refused.Err
		}
		return nil, err
	}
	return &Explanation{
		Tool: c.label, Path: c.binary.path, SHA256: c.sha256(), Dir: c.dir,
		Timeout: c.resolution, Grace: c.grace, Limits: c.appliedLimits(), Sandbox: c.planned(),
		Description: c.description, Warnings: append([]string{}, c.warnings...),
	}, nil
}
