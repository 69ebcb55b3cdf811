package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"strings"
	"time"

	"github.com/toolhost/toolhost/plugin"
)

const (
	// A batch of lines is sent when it has flushBytes or is flushInterval old:
	// few messages for many small files, little lost by a kill.
	flushBytes    = 32 << 10
	flushInterval = 50 * time.Millisecond
	// maxLogged is how many errors are logged; all are counted.
	maxLogged = 20
)

// report streams the lines and adds up what they say. One goroutine owns it.
type report struct {
	out   *plugin.Output
	lines hash.Hash
	batch strings.Builder

	files, bytes, failures int64
	first                  error // of the failures
}

func newReport(out *plugin.Output) *report {
	return &report{out: out, lines: sha256.New()}
}

func (r *report) tree() string { return hex.EncodeToString(r.lines.Sum(nil)) }

// print takes files until the channel is closed. It returns early with ctx's
// cause at the first file that was not read for it, so that the lines have no
// gap, and with an error if the host is gone.
func (r *report) print(ctx context.Context, files <-chan *file) error {
	tick := time.NewTicker(flushInterval)
	defer tick.Stop()
	var current *file
	for {
		// A nil channel disables its case: the next file is taken once the
		// current one is printed.
		next, done := files, chan result(nil)
		if current != nil {
			next, done = nil, current.done
		}
		var err error
		select {
		case f, open := <-next:
			if !open {
				return r.flush()
			}
			current = f
		case result := <-done:
			if result.err != nil && ctx.Err() != nil {
				return errors.Join(context.Cause(ctx), r.flush())
			}
			err = r.add(current.name, result)
			current = nil
		case <-tick.C:
			err = r.flush()
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) add(name string, result result) error {
	if result.err != nil {
		return r.fail(result.err)
	}
	r.files++
	r.bytes += result.bytes
	line := line(result.sum, name)
	_, _ = r.lines.Write([]byte(line)) // a hash takes everything
	r.batch.WriteString(line)
	if r.batch.Len() >= flushBytes {
		return r.flush()
	}
	return nil
}

func (r *report) fail(err error) error {
	if r.failures++; r.failures == 1 {
		r.first = err
	}
	if r.failures > maxLogged {
		return nil
	}
	return r.out.Log(err.Error())
}

func (r *report) flush() error {
	if r.batch.Len() == 0 {
		return nil
	}
	defer r.batch.Reset()
	return r.out.Text(r.batch.String())
}

var escapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`)

// line is as sha256sum writes it: where the name needs escapes, a backslash
// comes first.
func line(sum [sha256.Size]byte, name string) string {
	escaped := escapes.Replace(name)
	prefix := ""
	if escaped != name {
		prefix = `\`
	}
	return prefix + hex.EncodeToString(sum[:]) + "  " + escaped + "\n"
}
