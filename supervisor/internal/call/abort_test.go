package call

import (
	"context"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/sandbox/export"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// An abort is never waited for: not while the owner is busy, nor while the
// result is made, which it cuts short.
func TestAbortDoesNotWait(t *testing.T) {
	c := bare(spec.Request{})
	for range 5 { // nobody takes them
		c.Abort(api.ReasonUser)
	}
	if c.making.Err() != nil {
		t.Error("a call under way is to end with a result that it has not got")
	}
	c.retire()
	if c.making.Err() == nil {
		t.Error("aborts that nobody has taken are forgotten")
	}
}

// What was over before there was a slot has started nothing, however fast that came.
func TestAContextThatIsOverStartsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 { // the slot and the abort are there at once
		c := bare(spec.Request{}).Call
		c.Start = func(context.Context, *Call) {
			t.Error("it was started")
			c.StartFailed(errAborted)
		}
		c.Run(ctx)
		if r := c.Result(); r.Status != api.StatusCancelled || r.Reason != api.ReasonUser || r.Retry.SideEffects != "none" {
			t.Fatalf("%s (%s), side effects %s", r.Status, r.Reason, r.Retry.SideEffects)
		}
	}
}

func TestAbortEndsTheTakingOfFiles(t *testing.T) {
	c := bare(spec.Request{})
	c.retire()
	c.marks.stop = time.Now().Add(time.Hour) // so much time is left for the answer
	taken := make(chan struct{})
	files := c.collect(func(ctx context.Context) (export.Listing, error) {
		<-ctx.Done()
		close(taken)
		return export.Listing{Files: []export.File{{Path: "one"}}}, context.Cause(ctx)
	})
	c.Abort(api.ReasonUser)
	r := &api.Result{}
	files.fill(r)
	<-taken
	if !r.FilesIncomplete || len(r.Files) != 1 || len(r.Warnings) != 1 {
		t.Errorf("files %v, incomplete %v, warnings %q", r.Files, r.FilesIncomplete, r.Warnings)
	}
}

// A file system that hangs keeps back the files, not the answer.
func TestAnswerComesWithoutFilesThatHang(t *testing.T) {
	c := bare(spec.Request{})
	release := make(chan struct{})
	c.marks.stop = time.Now().Add(-time.Hour) // the answer is due
	files := c.collect(func(context.Context) (export.Listing, error) {
		<-release
		return export.Listing{}, nil
	})
	r := &api.Result{}
	files.fill(r)
	if !r.FilesIncomplete || len(r.Warnings) != 1 {
		t.Errorf("incomplete %v, warnings %q", r.FilesIncomplete, r.Warnings)
	}
	close(release)
	c.helpers.Wait()
}
