package main

import (
	"context"
	"errors"
	"regexp"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/toolhost/toolhost/plugin"
)

const (
	// aheadFiles is how many files may be under way or done before the oldest
	// of them is printed, and aheadMatches how many matches of each wait: they
	// bound the memory that keeping the order costs.
	aheadFiles   = 64
	aheadMatches = 64
)

// errEnough ends a search that has reached max_matches.
var errEnough = errors.New("max_matches is reached")

// run is one search: a walk, workers that scan files, and a printer that puts
// their matches back into the order of the walk.
type run struct {
	expression *regexp.Regexp
	walk       *walk
	maxMatches int64
	log        *complaints

	searched, binary, cut atomic.Int64
}

// file is one to search; its worker closes matches at the end.
type file struct {
	path    string
	matches chan string
}

// do ends with ctx's cause if ctx ends first; what was found by then has been
// streamed.
func (r *run) do(ctx context.Context, out *plugin.Output) (Summary, error) {
	inner, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	work, ordered := make(chan *file), make(chan *file, aheadFiles)
	var group sync.WaitGroup
	group.Go(func() { r.list(inner, work, ordered) })
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() { r.scanAll(inner, work) })
	}
	p := &printer{out: out, maxMatches: r.maxMatches, stop: stop}
	err := p.print(ordered)
	group.Wait()
	if ctx.Err() != nil && !p.enough() {
		err = context.Cause(ctx)
	}
	return r.summary(p), err
}

// list hands each file to the printer, for its place in the order, and to a
// worker.
func (r *run) list(ctx context.Context, work, ordered chan<- *file) {
	defer close(ordered)
	defer close(work)
	for path := range r.walk.files(r.log.add) {
		f := &file{path: path, matches: make(chan string, aheadMatches)}
		select {
		case ordered <- f:
		case <-ctx.Done():
			return
		}
		select {
		case work <- f:
		case <-ctx.Done():
			close(f.matches) // no worker will
			return
		}
	}
}

func (r *run) scanAll(ctx context.Context, work <-chan *file) {
	s := newScanner(r.expression)
	for f := range work {
		r.scan(ctx, s, f)
	}
	r.cut.Add(s.cut)
}

func (r *run) scan(ctx context.Context, s *scanner, f *file) {
	defer close(f.matches)
	err := s.scan(ctx, f)
	switch {
	case err == nil:
		r.searched.Add(1)
	case errors.Is(err, errBinary):
		r.binary.Add(1)
	case ctx.Err() == nil:
		r.log.add(err)
	}
}

func (r *run) summary(p *printer) Summary {
	return Summary{
		FilesSearched: r.searched.Load(), FilesMatched: p.files, Matches: p.matches,
		SkippedBinary: r.binary.Load(), CutLines: r.cut.Load(), Errors: r.log.count(), Truncated: p.enough(),
	}
}

// maxComplaints is how many errors are logged; all are counted.
const maxComplaints = 20

// complaints counts what could not be read, and logs the first of it.
type complaints struct {
	out  *plugin.Output
	seen atomic.Int64
}

func (c *complaints) add(err error) {
	switch n := c.seen.Add(1); {
	case n <= maxComplaints:
		_ = c.out.Log(err.Error())
	case n == maxComplaints+1:
		_ = c.out.Log("more errors are counted, not logged")
	}
}

func (c *complaints) count() int64 { return c.seen.Load() }
