package call

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor/internal/capture"
	"github.com/toolhost/toolhost/supervisor/internal/mask"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
	"github.com/toolhost/toolhost/supervisor/internal/process"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// streams keep what a call's processes write, count it, and hand it on. The
// processes' readers use it, and the owner when they are done or late.
type streams struct {
	call           *Call
	stdout, stderr *capture.Stream // nil until the call is admitted
	spills         *capture.Spills
	// What comes from there goes through these.
	stdoutMask, stderrMask *mask.Stream
	total                  atomic.Int64
	overTotal              sync.Once
	lost                   atomic.Pointer[error] // why output could not be passed on
	unread                 atomic.Pointer[error] // why the command's input is cut off
}

func newStreams(c *Call) *streams {
	return &streams{call: c, stdoutMask: c.p.Mask.Stream(), stderrMask: c.p.Mask.Stream()}
}

// open comes before the processes.
func (s *streams) open() {
	p := s.call.p
	s.spills = capture.OpenSpills(s.call.SpillDir, s.call.SpillTotal)
	stream := func(name string) *capture.Stream {
		return capture.NewStream(p.Bounds.OutputBytes, s.spills.File(name, p.Bounds.SpillBytes))
	}
	s.stdout, s.stderr = stream("stdout"), stream("stderr")
}

// take takes what processes write. A command adapter's own stdout is nothing that
// anyone wants.
func (s *streams) take(from process.Source, p []byte) error {
	switch command := s.call.p.Request.Command; {
	case from == process.Stderr:
		return s.stderrMask.Pass(p, s.passStderr)
	case from == process.CommandStdout:
		return s.stdoutMask.Pass(p, s.passCommand)
	case command == nil:
		return s.stdoutMask.Pass(p, s.passStdout)
	}
	return nil
}

// ended comes after the last of it.
func (s *streams) ended(from process.Source) {
	switch from {
	case process.Stderr:
		s.stderrMask.End(s.passStderr)
	case process.CommandStdout:
		s.stdoutMask.End(s.passCommand)
		s.endContent()
	}
}

func (s *streams) passStdout(p []byte) error { return s.pass(p, "stdout", s.stdout, nil) }

func (s *streams) passStderr(p []byte) error {
	var to io.Writer
	if command := s.call.p.Request.Command; command != nil {
		to = command.Stderr
	}
	return s.pass(p, "stderr", s.stderr, to)
}

// passCommand takes what a command writes. Where that is the tool's content, the
// owner gets it as such.
func (s *streams) passCommand(p []byte) error {
	if reader := s.call.p.Reader; reader != nil {
		s.sendContent(reader.Write(p), commandEnd{})
	}
	return s.pass(p, "stdout", s.stdout, s.call.p.Request.Command.Stdout)
}

func (s *streams) endContent() {
	reader := s.call.p.Reader
	if reader == nil {
		return
	}
	rest, structured, err := reader.End()
	last := commandEnd{structured: structured, err: err}
	if warner, ok := reader.(spec.OutputWarner); ok {
		last.warning = warner.Warning()
	}
	s.sendContent(rest, last)
}

func (s *streams) sendContent(content []api.Content, last commandEnd) {
	in := commandContent{content: content, last: last}
	in.clean()
	s.call.send(in)
}

// pass keeps p and hands it on; an error is that of to.
func (s *streams) pass(p []byte, name string, keep *capture.Stream, to io.Writer) error {
	_, _ = keep.Write(p)
	s.count(len(p))
	if c := s.call; name != "stdout" || c.p.Reader == nil {
		c.events.Written(name, p)
	}
	if to == nil {
		return nil
	}
	_, err := to.Write(p)
	if err != nil && !errors.Is(err, syscall.EPIPE) { // a reader that has had enough has gone
		s.lost.CompareAndSwap(nil, &err)
	}
	return err
}

// count adds to the total of all streams and has the owner hear once when it is
// passed.
func (s *streams) count(n int) {
	if s.total.Add(int64(n)); s.overLimit() {
		s.overTotal.Do(func() {
			s.call.Tasks.Run("report too much output", func() { s.call.send(breach{outcome.CauseOutputTotal, api.ReasonOutputTotal}) })
		})
	}
}

// overLimit: more has come in all than may.
func (s *streams) overLimit() bool {
	limit := s.call.p.Bounds.OutputTotalBytes
	return limit > 0 && s.total.Load() > limit
}

// flush keeps what was held back for the sake of a secret. Unless the streams are
// over it leaves out one that is just being passed on: its reader may never take
// it.
func (s *streams) flush(over bool) {
	if s.stdout == nil {
		return
	}
	end := (*mask.Stream).EndIfIdle
	if over {
		end = (*mask.Stream).End
	}
	end(s.stdoutMask, s.passStdout)
	end(s.stderrMask, func(p []byte) error { return s.pass(p, "stderr", s.stderr, nil) })
	s.call.events.Ended("stdout")
	s.call.events.Ended("stderr")
}

// passesThrough: a reader outside may be slower than the tool's death.
func (s *streams) passesThrough() bool {
	command := s.call.p.Request.Command
	return command != nil && (command.Stdout != nil || command.Stderr != nil)
}

// fill shows what was kept in a result; whole says that the streams ended by
// themselves, ran that there can have been any.
func (s *streams) fill(r *api.Result, whole, ran bool) {
	if s.stdout == nil {
		return
	}
	if ran && s.passesThrough() && !whole {
		r.Output.Undelivered = true
		r.Warnings = append(r.Warnings, "the output is incomplete: its reader had not taken all of it when the call's time was up")
	}
	if unread := s.unread.Load(); unread != nil {
		r.Warnings = append(r.Warnings, "cannot read all of the command's input: "+(*unread).Error())
	}
	if lost := s.lost.Load(); lost != nil {
		r.Output.Undelivered = true
		r.Warnings = append(r.Warnings, "cannot pass the output on: "+(*lost).Error())
	}
	stdout, stderr := s.kept()
	r.Output.Stdout, r.Output.Stderr = stdout.StreamOutput, stderr.StreamOutput
	if s.call.p.Reader != nil {
		if whole && r.Output.Content.DroppedBytes == 0 && stdout.SpillError != "" { // the result has more than the file
			stdout.SpillPath, stdout.SpillError = "", ""
		}
		r.Output.Stdout = api.StreamOutput{SpillPath: stdout.SpillPath} // the rest is content
	}
	for path, problem := range map[string]string{stdout.SpillPath: stdout.SpillError, stderr.SpillPath: stderr.SpillError} {
		if problem != "" {
			r.Warnings = append(r.Warnings, "spill file "+path+" is incomplete: "+problem)
		}
	}
}

// quickBytes are assembled sooner than by two goroutines.
const quickBytes = 64 << 10

// kept assembles both streams at once, which can take a while.
func (s *streams) kept() (stdout, stderr capture.Kept) {
	if s.total.Load() < quickBytes {
		return s.stdout.Kept(), s.stderr.Kept()
	}
	var both sync.WaitGroup
	both.Go(func() { stdout = s.stdout.Kept() })
	stderr = s.stderr.Kept()
	both.Wait()
	return stdout, stderr
}

// close ends the spill files.
func (s *streams) close() {
	if s.stdout != nil {
		s.stdout.Close()
		s.stderr.Close()
		s.spills.Close()
	}
}
