package supervisor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/toolhost/toolhost/supervisor/internal/capture"
)

// output takes everything that a call's processes write. Reading never stops
// before the pipes end, so that a tool never blocks on being cut.
type output struct {
	call           *Call
	stdout, stderr *capture.Stream
	total          atomic.Int64
	overTotal      sync.Once
	lost           atomic.Pointer[error] // why output could not be passed on
	readers        sync.WaitGroup
	pipes          *pipes
	stdoutEnded    func() // of a plugin's stdout, also where nobody read it
}

func newOutput(c *Call) *output {
	return &output{
		call:   c,
		stdout: capture.NewStream(c.limits.OutputBytes, c.spill("stdout")),
		stderr: capture.NewStream(c.limits.OutputBytes, c.spill("stderr")),
	}
}

func (c *Call) spill(stream string) *capture.Spill {
	if c.s.config.SpillDir == "" {
		return nil
	}
	name := fmt.Sprintf("%s.%s", c.id, stream)
	return &capture.Spill{Path: filepath.Join(c.s.config.SpillDir, name), LimitBytes: c.limits.SpillBytes}
}

// pipe is one pipe between the host and the call.
type pipe struct{ host, child *os.File }

func outPipe() (pipe, error) {
	r, w, err := os.Pipe()
	return pipe{host: r, child: w}, err
}

func inPipe() (pipe, error) {
	r, w, err := os.Pipe()
	return pipe{host: w, child: r}, err
}

// pipes are all of a call's. A command has its own three, so that what it
// writes is never mixed with the adapter's handshake.
type pipes struct {
	stdout, stderr pipe // the plugin's own
	command        bool
	in, out        pipe // the command's; its stderr is the plugin's
}

func (o *output) open(command bool) (p *pipes, err error) {
	p = &pipes{command: command}
	defer func() {
		if err != nil {
			p.closeChildEnds()
			p.closeHostEnds()
			err = fmt.Errorf("cannot make a pipe: %w; raise the limit of open files", err)
		}
	}()
	if p.stdout, err = outPipe(); err != nil {
		return nil, err
	}
	if p.stderr, err = outPipe(); err != nil || !command {
		return p, err
	}
	if p.in, err = inPipe(); err != nil {
		return nil, err
	}
	p.out, err = outPipe()
	return p, err
}

// extra are the tool's descriptors 3 to 5.
func (p *pipes) extra() []*os.File {
	if !p.command {
		return nil
	}
	return []*os.File{p.in.child, p.out.child, p.stderr.child}
}

func (p *pipes) closeChildEnds() {
	closeAll(p.stdout.child, p.stderr.child, p.in.child, p.out.child)
}

func (p *pipes) closeHostEnds() {
	closeAll(p.stdout.host, p.stderr.host, p.in.host, p.out.host)
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

// pump starts the readers and returns the plugin's stdout for the handshake.
func (o *output) pump(p *pipes) io.Reader {
	o.pipes = p
	var stdoutTo, stderrTo io.Writer
	if command := o.call.request.Command; command != nil {
		stdoutTo, stderrTo = command.Stdout, command.Stderr
		go feed(p.in.host, command.Stdin)
		o.readers.Go(func() { o.read(p.out.host, "stdout", o.stdout, stdoutTo) })
	}
	o.readers.Go(func() { o.read(p.stderr.host, "stderr", o.stderr, stderrTo) })
	o.readers.Add(1)
	o.stdoutEnded = sync.OnceFunc(o.readers.Done)
	go func() {
		o.readers.Wait()
		o.call.send(input{kind: inOutputEnded})
	}()
	return &endReader{r: p.stdout.host, ended: o.stdoutEnded}
}

// feed copies the command's input. Its end is the command's end of file.
func feed(to *os.File, from io.Reader) {
	defer to.Close()
	if from != nil {
		_, _ = io.Copy(to, from)
	}
}

// endReader tells when its reader has come to its end.
type endReader struct {
	r     io.Reader
	ended func()
}

func (e *endReader) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	if err != nil {
		e.ended()
	}
	return n, err
}

const readBytes = 64 << 10

// read takes one pipe to its end.
func (o *output) read(from *os.File, name string, keep *capture.Stream, to io.Writer) {
	buf := make([]byte, readBytes)
	for {
		n, err := from.Read(buf)
		if n > 0 && !o.pass(buf[:n], name, keep, to) {
			_ = from.Close() // whoever writes on sees a broken pipe
			return
		}
		if err != nil {
			return
		}
	}
}

func (o *output) pass(p []byte, name string, keep *capture.Stream, to io.Writer) bool {
	_, _ = keep.Write(p)
	o.count(len(p))
	if o.call.events.on() {
		text := strings.ToValidUTF8(string(p), "\uFFFD")
		o.call.events.publish(Event{Kind: EventOutput, Stream: name, Content: &Content{Type: "text", Text: text}})
	}
	if to == nil {
		return true
	}
	_, err := to.Write(p)
	if err != nil && !errors.Is(err, syscall.EPIPE) { // a reader that has had enough is none
		o.lost.CompareAndSwap(nil, &err)
	}
	return err == nil
}

// count adds to the total of all streams and tells the owner once when it is
// passed.
func (o *output) count(n int) {
	limit := o.call.limits.OutputTotalBytes
	if o.total.Add(int64(n)) > limit && limit > 0 {
		o.overTotal.Do(func() { go o.call.send(input{kind: inOutputTotal}) })
	}
}

// toolStdout takes what a plugin writes to its standard output after the
// handshake. A command adapter writes nothing there that anyone wants.
func (o *output) toolStdout() io.Writer {
	if o.call.request.Command != nil {
		return io.Discard
	}
	return writerFunc(func(p []byte) (int, error) {
		o.pass(p, "stdout", o.stdout, nil)
		return len(p), nil
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// passesThrough: a reader outside may be slower than the tool's death.
func (o *output) passesThrough() bool {
	command := o.call.request.Command
	return command != nil && (command.Stdout != nil || command.Stderr != nil)
}

// close ends readers that still wait, and the spill files.
func (o *output) close() {
	if o.pipes != nil {
		o.pipes.closeHostEnds()
		o.stdoutEnded()
	}
	o.stdout.Close()
	o.stderr.Close()
}
