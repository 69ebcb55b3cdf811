package main

import (
	"strings"
	"time"

	"github.com/toolhost/toolhost/plugin"
)

// A batch of matches is sent when it has flushBytes or is flushInterval old:
// few messages for a flood of matches, little lost by a kill.
const (
	flushBytes    = 32 << 10
	flushInterval = 50 * time.Millisecond
)

// printer streams the matches of files in the files' order. One goroutine owns
// it.
type printer struct {
	out        *plugin.Output
	maxMatches int64
	stop       func(error) // ends the workers

	files, matches int64
	batch          strings.Builder
	failed         error
}

// print takes files until the channel is closed, and each file's matches until
// its channel is. It returns an error if the host is gone.
func (p *printer) print(files <-chan *file) error {
	tick := time.NewTicker(flushInterval)
	defer tick.Stop()
	for {
		select {
		case f, open := <-files:
			if !open {
				p.flush()
				return p.failed
			}
			p.printFile(f, tick.C)
		case <-tick.C:
			p.flush()
		}
	}
}

func (p *printer) printFile(f *file, tick <-chan time.Time) {
	before := p.matches
	for {
		select {
		case match, open := <-f.matches:
			if !open {
				p.files += min(1, p.matches-before)
				return
			}
			p.add(match)
		case <-tick:
			p.flush()
		}
	}
}

// add drops what comes after the last wanted match, or for a host that is gone.
func (p *printer) add(match string) {
	if p.failed != nil || p.enough() {
		return
	}
	p.matches++
	p.batch.WriteString(match)
	if p.batch.Len() >= flushBytes {
		p.flush()
	}
	if p.enough() {
		p.stop(errEnough)
	}
}

func (p *printer) enough() bool { return p.maxMatches > 0 && p.matches >= p.maxMatches }

func (p *printer) flush() {
	if p.batch.Len() == 0 {
		return
	}
	if err := p.out.Text(p.batch.String()); err != nil {
		p.failed = err
		p.stop(err)
	}
	p.batch.Reset()
}
