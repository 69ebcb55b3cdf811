package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/supervisor/internal/pace"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// pipe is one pipe between the host and the call.
type pipe struct{ host, child *os.File }

// The modes let the call, another user, open its end once more by /dev/stdout or
// /dev/stdin, and never the host's.
func outPipe() (pipe, error) { return newPipe(0, 0o622) }

func inPipe() (pipe, error) { return newPipe(1, 0o644) }

// newPipe makes a pipe. The host keeps the reading end, 0, or the writing one, 1. Only
// that is the poller's, which would be woken at once by the writing end of a new pipe.
func newPipe(own int, mode uint32) (pipe, error) {
	var ends [2]int
	if err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC); err != nil {
		return pipe{}, os.NewSyscallError("pipe2", err)
	}
	err := errors.Join(
		os.NewSyscallError("fcntl", syscall.SetNonblock(ends[own], true)),
		os.NewSyscallError("fchmod", syscall.Fchmod(ends[own], mode)),
	)
	return pipe{host: os.NewFile(uintptr(ends[own]), "pipe"), child: os.NewFile(uintptr(ends[1-own]), "pipe")}, err
}

// pipes are all of a call's. A command has its own three, so that what it
// writes is never mixed with the adapter's handshake.
type pipes struct {
	// stdin is the plugin's /dev/null, opened for it alone: the flags and locks of an open
	// file are those of all processes that have it.
	stdin          *os.File
	stdout, stderr pipe // the plugin's own
	command        bool
	in, out        pipe // the command's; its stderr is the plugin's
}

func openPipes(command bool) (_ *pipes, err error) {
	p := &pipes{command: command}
	defer func() {
		if err != nil {
			p.closeChildEnds()
			p.closeHostEnds()
			err = fmt.Errorf("cannot make a pipe: %w; raise the limit of open files", err)
		}
	}()
	if p.stdin, err = os.Open(os.DevNull); err != nil {
		return nil, err
	}
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
	closeAll(p.stdin, p.stdout.child, p.stderr.child, p.in.child, p.out.child)
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
// Reading never stops before the pipes end, so that a tool never blocks on
// being cut, nor while no call is there to read for.
func (p *Process) pump(command *spec.Command) io.Reader {
	if command != nil {
		go p.feed(command.Stdin)
		p.readers.Go(func() { p.read(newEagerReader(p.pipes.out.host, func() {}), CommandStdout) })
	}
	p.stderr = newEagerReader(p.pipes.stderr.host, func() {})
	p.readers.Go(func() { p.read(p.stderr, Stderr) })
	p.readers.Add(1)
	p.stdoutEnded = sync.OnceFunc(p.readers.Done)
	p.stdout = newEagerReader(p.pipes.stdout.host, p.stdoutEnded)
	p.tasks.Run("await the end of output", func() {
		p.readers.Wait()
		p.tellEnd(AllOutput)
	})
	return p.stdout
}

// feed copies the command's input. Its end is the command's end of file. It ends
// with the reader, or with the first write after the command's end: nobody waits
// for it, since the reader is the caller's.
func (p *Process) feed(from io.Reader) {
	to := p.pipes.in.host
	defer to.Close()
	if from == nil {
		return
	}
	_, err := io.Copy(to, from)
	if err == nil || errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) { // the command wants no more
		return
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok { // else it names calls of the copying
		err = errno
	}
	for _, l := range p.audience.present() {
		l.InputFailed(err)
	}
}

// What is read at once: little at first, since most calls write little, and more
// for those that fill it.
const leastReadBytes, mostReadBytes = 4 << 10, 64 << 10

// read takes one pipe to its end, for all calls that are there.
func (p *Process) read(file *eagerReader, from Source) {
	defer p.tellEnd(from)
	buf, reader := make([]byte, leastReadBytes), pace.Pace{Load: p.load}
	for {
		n, err := file.Read(buf)
		if n > 0 && p.give(buf[:n], from, &reader) != nil {
			_ = file.file.Close() // a writer sees a broken pipe
			return
		}
		if err != nil {
			return
		}
		if n == len(buf) && n < mostReadBytes {
			buf = make([]byte, 4*n)
		}
	}
}

func (p *Process) tellEnd(from Source) {
	for _, l := range p.audience.present() {
		l.OutputEnded(from)
	}
}

// give hands output to all calls that are there, as fast as its reader may.
func (p *Process) give(b []byte, from Source, reader *pace.Pace) error {
	began, late := time.Now(), false
	for _, l := range p.audience.present() {
		if err := l.Output(from, b); err != nil {
			return err
		}
		late = late || l.Late()
	}
	reader.Spent(time.Since(began), late)
	return nil
}

// passStdout takes what a plugin writes to its standard output after the
// handshake.
func (p *Process) passStdout(b []byte) (int, error) {
	_ = p.give(b, Stdout, &p.stdoutPace) // a plugin's stdout has no reader that can fail
	return len(b), nil
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
