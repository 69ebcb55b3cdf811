package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/plugin"
)

const (
	// sniffBytes is how far a NUL is looked for, which marks a file as binary.
	sniffBytes = 8 << 10
	// progressInterval is the least time between two reports.
	progressInterval = 100 * time.Millisecond
)

var errBinary = errors.New("the file is binary")

// reading feeds files to the counter and reports how far it is.
type reading struct {
	out     *plugin.Output
	counter *counter

	total, done   int64 // bytes
	reported      time.Time
	files, binary int64
	errors        int64
	logged        int
}

func (r *reading) all(ctx context.Context, paths []string) {
	for _, path := range paths {
		err := r.file(ctx, path)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errBinary):
			r.binary++
		case err != nil:
			r.errors++
			r.log(err)
		default:
			r.files++
		}
	}
}

func (r *reading) file(ctx context.Context, path string) error {
	// Should a FIFO have taken the file's place, opening it must not block.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	input := bufio.NewReaderSize(&meter{reading: r, path: path, file: f}, sniffBytes)
	head, err := input.Peek(sniffBytes)
	if err != nil && err != io.EOF {
		return err
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return errBinary
	}
	return r.counter.count(ctx, input)
}

func (r *reading) log(failures ...error) {
	for _, err := range failures {
		if r.logged++; r.logged <= maxLogged {
			_ = r.out.Log(err.Error())
		}
	}
}

func (r *reading) summary(top int) Summary {
	s := r.counter.summary(top)
	s.Files, s.SkippedBinary, s.Errors = r.files, r.binary, r.errors
	return s
}

// meter is a file that reports progress as it is read.
type meter struct {
	reading *reading
	path    string
	file    io.Reader
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.file.Read(p)
	m.reading.advance(int64(n), m.path)
	return n, err
}

// advance reports at once at first, then from time to time. A file that grows
// while it is read makes no more than all.
func (r *reading) advance(n int64, path string) {
	r.done += n
	if now := time.Now(); r.total > 0 && now.Sub(r.reported) >= progressInterval {
		r.reported = now
		_ = r.out.Progress(float64(r.done)/float64(r.total), path)
	}
}
