package main

import (
	"context"
	"crypto/sha256"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
)

// aheadFiles is how many files may be under way or done before the oldest of
// them is printed.
const aheadFiles = 1024

// file is one to read, or a folder that could not be: its worker sends one
// result to done, which has room for it.
type file struct {
	name string
	done chan result
}

type result struct {
	sum   [sha256.Size]byte
	bytes int64
	err   error
}

// sum reads the files with as many workers as there are CPUs, and hands the
// results to r in path order. It ends soon after ctx, with ctx's cause.
func sum(ctx context.Context, w *walk, r *report) error {
	inner, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	work, ordered := make(chan *file), make(chan *file, aheadFiles)
	var group sync.WaitGroup
	group.Go(func() { list(inner, w, work, ordered) })
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for f := range work {
				f.done <- read(inner, filepath.Join(w.root, f.name))
			}
		})
	}
	err := r.print(inner, ordered)
	stop(err)
	group.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// list hands each file to the report, for its place in the order, and to a
// worker.
func list(ctx context.Context, w *walk, work, ordered chan<- *file) {
	defer close(ordered)
	defer close(work)
	w.files(func(name string, err error) bool {
		f := &file{name: name, done: make(chan result, 1)}
		select {
		case ordered <- f:
		case <-ctx.Done():
			return false
		}
		if err != nil {
			f.done <- result{err: err}
			return true
		}
		select {
		case work <- f:
			return true
		case <-ctx.Done():
			f.done <- result{err: context.Cause(ctx)} // no worker will
			return false
		}
	})
}

func read(ctx context.Context, path string) (r result) {
	// Should a FIFO have taken the file's place, opening it must not block.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return result{err: err}
	}
	defer f.Close()
	hash := sha256.New()
	r.bytes, r.err = io.Copy(hash, &reader{ctx, f})
	hash.Sum(r.sum[:0])
	return r
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
