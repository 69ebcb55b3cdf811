package exit

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/internal/cli/cmdline"
)

// Stdout is where a command prints. What cannot be written is the host's failure,
// never one of usage. Several goroutines may write at once.
type Stdout struct {
	File *os.File

	mu     sync.Mutex
	failed error // the first
}

func (s *Stdout) Write(p []byte) (int, error) {
	n, err := s.File.Write(p)
	if err == nil {
		return n, nil
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	err = With(Host, fmt.Errorf("cannot write to standard output: %w; send it elsewhere", err))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = cmp.Or(s.failed, err)
	return n, s.failed
}

// Fd is the file's, so that a terminal can be told.
func (s *Stdout) Fd() uintptr { return s.File.Fd() }

// End is how a command ends that returned err: not well if something that it
// printed was lost, whether or not it noticed. Where only the reader has gone, it ends as by
// SIGPIPE, without a word.
func (s *Stdout) End(err error) *Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	end := Of(err)
	if end.Code == OK && s.failed != nil {
		end = Of(s.failed)
	}
	if errors.Is(end, syscall.EPIPE) && innermost(end) == s.failed {
		return &Error{Code: SignalBase + int(syscall.SIGPIPE)}
	}
	return end
}

// innermost is the error that others have only given a code.
func innermost(e *Error) error {
	for inner, ok := e.Err.(*Error); ok; inner, ok = e.Err.(*Error) {
		e = inner
	}
	return e
}

// Run executes a command line, tells its error, and returns the exit code.
func Run(root *cobra.Command, args []string) int {
	stdout := &Stdout{File: os.Stdout}
	root.SetArgs(args)
	root.SetOut(stdout)
	cmdline.Standard(root)
	end := stdout.End(root.Execute())
	if end.Err != nil {
		Tell(os.Stderr, root.Name(), end.Err)
	}
	return end.Code
}
