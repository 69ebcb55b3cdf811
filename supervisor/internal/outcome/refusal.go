package outcome

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/text"
)

// Refusal is why a call never began.
type Refusal struct {
	Status api.Status
	Reason api.Reason
	Err    error
	// Describing is the result of the Describe that failed, if that was it.
	Describing *api.Result
	// Again is when a tool that rests is asked anew; zero if it does not.
	Again time.Duration
}

// Refuse returns a Refusal.
func Refuse(status api.Status, reason api.Reason, err error) error {
	return &Refusal{Status: status, Reason: reason, Err: err}
}

// HostFailure is an error of the host's own, unless it is known to be another's.
func HostFailure(err error) error {
	if _, known := errors.AsType[*Refusal](err); known || err == nil {
		return err
	}
	return Refuse(api.StatusStartFailed, api.ReasonHost, err)
}

func (f *Refusal) Error() string { return f.Err.Error() }
func (f *Refusal) Unwrap() error { return f.Err }

// ErrEndedStarting is the end of a call whose tool was not there yet.
var ErrEndedStarting = errors.New("the call ended while the tool was starting")

// Word reports the Describe that the call was refused for, in a result that has
// been judged.
func (f *Refusal) Word(r *api.Result, t Terms) {
	switch {
	case f.Again > 0:
		f.wordRest(r)
	case f.Describing != nil:
		copyEvidence(r, f.Describing, t.Adapter)
		r.Message = message(r, outcome{}, t.longest(), false)
		if r.Status == api.StatusTimeout {
			r.Message, r.Retry.Hint = lateMessage(r), lateHint
		}
	}
}

// wordRest says when the tool can be called again.
func (f *Refusal) wordRest(r *api.Result) {
	r.Retry.Hint, r.Retry.Retryable = fmt.Sprintf("call again in %s", f.Again), Retryable(r)
	r.Retry.AfterMs = f.Again.Milliseconds()
	what := "was not called"
	if r.Status == api.StatusStartFailed {
		what = "could not be started"
	}
	r.Message = fmt.Sprintf("%s Tool %q %s: %s. It has changed nothing. Next: %s.", causePrefix(r), r.Tool, what, Shorten(text.FirstLine(f.Err.Error())), r.Retry.Hint)
}

// copyEvidence takes over what a failed Describe has to show, for it was what
// this call came to.
func copyEvidence(r, d *api.Result, adapter bool) {
	r.Timing, r.Kill, r.Exit, r.Usage, r.Output, r.Content, r.Limits = d.Timing, d.Kill, d.Exit, d.Usage, d.Output, d.Content, d.Limits
	r.Timing.StartMs, r.Timing.RunMs = d.Timing.StartMs+d.Timing.RunMs, 0 // all of it went before the call
	r.Overran = d.Overran
	missing := r.Reason == api.ReasonNotFound || r.Reason == api.ReasonNotExecutable
	if !adapter || !missing { // else it was the adapter that ran, not the program behind it
		r.Retry.SideEffects = d.Retry.SideEffects
		r.Retry.Retryable = r.Retry.Retryable && d.Retry.SideEffects == "none"
	}
	r.Details = deadlineDetails(r)
}

// AbortCause, as the cause of a context, is the reason for which the context's end aborts
// calls.
type AbortCause api.Reason

func (c AbortCause) Error() string { return "aborted (" + string(c) + ")" }

// AbortReason is why a context that has ended aborts a call: for the reason of its
// AbortCause, timeout at a deadline, else user.
func AbortReason(ctx context.Context) api.Reason {
	cause := context.Cause(ctx)
	if c, ok := errors.AsType[AbortCause](cause); ok {
		return api.Reason(c)
	}
	if ctx.Err() == context.DeadlineExceeded || errors.Is(cause, context.DeadlineExceeded) {
		return api.ReasonTimeout
	}
	return api.ReasonUser
}
