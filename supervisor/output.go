package supervisor

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor/internal/capture"
	"github.com/toolhost/toolhost/supervisor/internal/publish"
	"github.com/toolhost/toolhost/supervisor/internal/veil"
)

// output keeps what a call's processes write, and counts it.
type output struct {
	call           *Call
	stdout, stderr *capture.Stream
	// What comes from there goes through these.
	stdoutVeil, stderrVeil *veil.Stream
	total                  atomic.Int64
	overTotal              sync.Once
	lost                   atomic.Pointer[error] // why output could not be passed on
}

func newOutput(c *Call) *output {
	return &output{
		call:   c,
		stdout: capture.NewStream(c.p.Bounds.OutputBytes, c.spill("stdout")),
		stderr: capture.NewStream(c.p.Bounds.OutputBytes, c.spill("stderr")),

		stdoutVeil: c.p.Veil.Stream(), stderrVeil: c.p.Veil.Stream(),
	}
}

func (c *Call) spill(stream string) *capture.Spill {
	if c.s.config.SpillDir == "" {
		return nil
	}
	name := fmt.Sprintf("%s.%s", c.id, stream)
	return &capture.Spill{Path: filepath.Join(c.s.config.SpillDir, name), LimitBytes: c.p.Bounds.SpillBytes}
}

// toolStdout takes what a plugin writes to its standard output after the
// handshake. A command adapter writes nothing there that anyone wants.
func (c *Call) toolStdout(p []byte) error {
	if c.p.Request.Command == nil {
		return c.output.stdoutVeil.Pass(p, c.passStdout)
	}
	return nil
}

func (c *Call) passStdout(p []byte) error { return c.output.pass(p, "stdout", c.output.stdout, nil) }

func (c *Call) toolStderr(p []byte) error { return c.output.stderrVeil.Pass(p, c.passStderr) }

func (c *Call) passStderr(p []byte) error {
	var to io.Writer
	if c.p.Request.Command != nil {
		to = c.p.Request.Command.Stderr
	}
	return c.output.pass(p, "stderr", c.output.stderr, to)
}

// pass keeps p and hands it on; an error is that of to.
func (o *output) pass(p []byte, name string, keep *capture.Stream, to io.Writer) error {
	_, _ = keep.Write(p)
	o.count(len(p))
	if (name != "stdout" || o.call.p.Reader == nil) && o.call.events.Tells(len(p)) {
		o.call.events.Publish(api.Event{Kind: api.EventOutput, Stream: name, Content: &api.Content{Type: "text", Text: publish.TextBegin(p)}})
	}
	if to == nil {
		return nil
	}
	_, err := to.Write(p)
	if err != nil && !errors.Is(err, syscall.EPIPE) { // a reader that has had enough is none
		o.lost.CompareAndSwap(nil, &err)
	}
	return err
}

// count adds to the total of all streams and tells the owner once when it is
// passed.
func (o *output) count(n int) {
	if o.total.Add(int64(n)); o.overLimit() {
		o.overTotal.Do(func() { go o.call.send(input{kind: inOutputTotal}) })
	}
}

// overLimit: more has come in all than may.
func (o *output) overLimit() bool {
	limit := o.call.p.Bounds.OutputTotalBytes
	return limit > 0 && o.total.Load() > limit
}

// flush keeps what was held back for the sake of a secret. Unless the streams are
// over it leaves out one that is just being passed on: its reader may never take
// it.
func (o *output) flush(over bool) {
	end := (*veil.Stream).EndIfIdle
	if over {
		end = (*veil.Stream).End
	}
	end(o.stdoutVeil, o.call.passStdout)
	end(o.stderrVeil, func(p []byte) error { return o.pass(p, "stderr", o.stderr, nil) })
}

// passesThrough: a reader outside may be slower than the tool's death.
func (o *output) passesThrough() bool {
	command := o.call.p.Request.Command
	return command != nil && (command.Stdout != nil || command.Stderr != nil)
}

// kept begins to assemble the rest of the streams, which can take a while, and
// returns a function that waits for it.
func (o *output) kept() (wait func() (stdout, stderr capture.Kept)) {
	if o == nil {
		return nil
	}
	var stdout, stderr capture.Kept
	var both sync.WaitGroup
	both.Go(func() { stdout = o.stdout.Kept() })
	both.Go(func() { stderr = o.stderr.Kept() })
	return func() (capture.Kept, capture.Kept) {
		both.Wait()
		return stdout, stderr
	}
}

// close ends the spill files.
func (o *output) close() {
	o.stdout.Close()
	o.stderr.Close()
}
