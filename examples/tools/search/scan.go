package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"syscall"
	"unicode/utf8"
)

const (
	// sniffBytes is how far a NUL is looked for, which marks a file as binary.
	sniffBytes = 8 << 10
	// maxLineBytes is how much of a line is searched; the rest of a longer one
	// is skipped.
	maxLineBytes = 256 << 10
	// maxShownRunes is how much of a matching line is shown.
	maxShownRunes = 500
)

var errBinary = errors.New("the file is binary")

// scanner searches one file after the other; it is its worker's own.
type scanner struct {
	expression *regexp.Regexp
	lines      *bufio.Reader
	cut        int64 // lines searched at their beginning only
}

func newScanner(expression *regexp.Regexp) *scanner {
	return &scanner{expression: expression, lines: bufio.NewReaderSize(nil, maxLineBytes)}
}

// scan sends the file's matches as they are found, and ends soon after ctx.
func (s *scanner) scan(ctx context.Context, f *file) error {
	// The walk saw a regular file; should a FIFO have taken its place, opening
	// it must not block.
	opened, err := os.OpenFile(f.path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer opened.Close()
	s.lines.Reset(&reader{ctx, opened})
	head, err := s.lines.Peek(sniffBytes)
	if err != nil && err != io.EOF {
		return err
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return errBinary
	}
	return s.scanLines(ctx, f)
}

func (s *scanner) scanLines(ctx context.Context, f *file) error {
	for number := 1; ; number++ {
		line, err := s.next()
		if err != nil && err != io.EOF {
			return err
		}
		if s.matches(line, err) && !send(ctx, f.matches, show(f.path, number, line)) {
			return context.Cause(ctx)
		}
		if err == io.EOF {
			return nil
		}
	}
}

// matches is false for the nothing that follows the last line's end.
func (s *scanner) matches(line []byte, err error) bool {
	if len(line) == 0 && err == io.EOF {
		return false
	}
	return s.expression.Match(line)
}

// next returns a line without its end, valid until the next call.
func (s *scanner) next() ([]byte, error) {
	line, err := s.lines.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		line = bytes.Clone(line)
		err = s.skipLine()
		s.cut++
	}
	line = bytes.TrimSuffix(line, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), err
}

func (s *scanner) skipLine() error {
	for {
		if _, err := s.lines.ReadSlice('\n'); !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

func send(ctx context.Context, to chan<- string, match string) bool {
	select {
	case to <- match:
		return true
	case <-ctx.Done():
		return false
	}
}

func show(path string, number int, line []byte) string {
	text := strings.ToValidUTF8(string(cutRunes(line, maxShownRunes)), "\uFFFD")
	return fmt.Sprintf("%s:%d: %s\n", strings.ToValidUTF8(path, "\uFFFD"), number, text)
}

// cutRunes is the first limit characters of line.
func cutRunes(line []byte, limit int) []byte {
	end := 0
	for ; limit > 0 && end < len(line); limit-- {
		_, size := utf8.DecodeRune(line[end:])
		end += size
	}
	return line[:end]
}

// reader ends with the context's cause, so that a long file ends soon too.
type reader struct {
	ctx  context.Context
	file io.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.file.Read(p)
}
