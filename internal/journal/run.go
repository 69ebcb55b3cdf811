package journal

import (
	"fmt"
	"time"
)

// Bounds of what shares a commit.
const (
	maxGroup      = 128
	maxGroupBytes = 4 << 20
)

// ageCheckEvery is how often an idle journal looks for what is too old.
const ageCheckEvery = time.Minute

// run owns the writer until Close. Between two commits it does at most one step of pruning.
func (j *Journal) run() {
	defer close(j.done)
	ticker := time.NewTicker(ageCheckEvery)
	defer ticker.Stop()
	for {
		var again chan struct{} // ready while there is something to prune
		if j.writer.pruner.active {
			again = ready
		}
		select {
		case r := <-j.requests:
			j.writer.commitGroup(j.collect(r))
		case waiter := <-j.prunes:
			j.writer.pruner.begin(waiter)
		case <-ticker.C:
			j.writer.pruner.begin(nil)
		case <-again:
		case <-j.quit:
			j.closeErr = j.finish()
			return
		}
		if j.writer.pruner.active {
			j.writer.prune()
		}
	}
}

// ready never blocks a receiver.
var ready = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// collect adds whoever waits already to the first request.
func (j *Journal) collect(first *request) []*request {
	group, bytes := []*request{first}, first.bytes
	for len(group) < maxGroup && bytes < maxGroupBytes {
		select {
		case r := <-j.requests:
			group, bytes = append(group, r), bytes+r.bytes
		default:
			return group
		}
	}
	return group
}

func (j *Journal) finish() error {
	j.writer.pruner.end(ErrClosed)
	err := j.writer.close()
	if releaseErr := j.lock.release(err == nil && !j.writer.damaged); err == nil {
		err = releaseErr
	}
	if err != nil {
		return fmt.Errorf("cannot close the journal in %s: %w", j.dir, err)
	}
	return nil
}
