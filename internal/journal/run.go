package journal

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Bounds of what shares a commit.
const (
	maxGroup      = 128
	maxGroupBytes = 4 << 20
)

// commit has the request committed, by this goroutine or by another one that waits like it: the one that gets to
// write commits for all who wait. That takes no hand-over between goroutines where nobody else appends.
func (j *Journal) commit(r *request) error {
	j.waitingMu.Lock()
	j.waiting = append(j.waiting, r)
	j.waitingMu.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	for {
		select {
		case err := <-r.reply:
			return err
		default:
		}
		group := j.collect()
		if j.closed {
			answer(group, ErrClosed)
			continue
		}
		j.writer.commitGroup(group)
		if j.writer.pruner.active {
			j.wakeUp()
		}
	}
}

// collect takes those who wait, the first to have come first.
func (j *Journal) collect() []*request {
	j.waitingMu.Lock()
	defer j.waitingMu.Unlock()
	n, bytes := 0, int64(0)
	for n < len(j.waiting) && n < maxGroup && bytes < maxGroupBytes {
		bytes += j.waiting[n].bytes
		n++
	}
	group := j.waiting[:n:n]
	if j.waiting = j.waiting[n:]; len(j.waiting) == 0 {
		j.waiting = nil
	}
	return group
}

func answer(group []*request, err error) {
	for _, r := range group {
		r.reply <- err
	}
}

func (j *Journal) wakeUp() {
	select {
	case j.wake <- struct{}{}:
	default: // it is awake
	}
}

// ageCheckEvery is how often an idle journal looks for what is too old.
const ageCheckEvery = time.Minute

// run prunes, step by step between commits, until Close.
func (j *Journal) run() {
	defer close(j.done)
	ticker := time.NewTicker(ageCheckEvery)
	defer ticker.Stop()
	j.wakeUp() // the writer has begun with something to prune
	for {
		var waiter chan pruned
		begin := true
		select {
		case waiter = <-j.prunes:
		case <-ticker.C:
		case <-j.wake:
			begin = false
		case <-j.quit:
			j.endCheck()
			j.checking.Wait()
			j.closeErr = j.finish()
			return
		}
		if j.pruneStep(begin, waiter) {
			j.wakeUp()
		}
	}
}

// pruneStep begins a pass of pruning if it should, and does one step of the one under way; more says that it goes on.
func (j *Journal) pruneStep(begin bool, waiter chan pruned) (more bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if begin {
		j.writer.pruner.begin(waiter)
	}
	if j.writer.pruner.active {
		j.writer.prune()
	}
	return j.writer.pruner.active
}

func (j *Journal) finish() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
	j.writer.pruner.end(ErrClosed)
	closed := rand.Int64()
	var marked error
	if !j.writer.damaged {
		marked = run(j.writer.do.markClosed, closed)
	}
	err := j.writer.close()
	clean := err == nil && !j.writer.damaged
	if clean && marked == nil {
		if err := writeSums(j.dir, closed); err != nil { // the next owner looks at the structure instead
			j.writer.log.Warn("cannot write checksums for the journal", "error", err)
		}
	}
	if releaseErr := j.lock.release(clean); err == nil {
		err = releaseErr
	}
	if err != nil {
		return fmt.Errorf("cannot close the journal in %s: %w", j.dir, err)
	}
	return nil
}
