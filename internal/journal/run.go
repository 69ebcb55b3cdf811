package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Bounds of what shares a commit: no request waits long for those before it.
const (
	maxSmall      = 8       // events of one request that others take along
	maxSmallBytes = 1 << 20 // and their bytes
	maxGroup      = 128     // events of more than one
	maxGroupBytes = 4 << 20
)

func (r *request) small() bool { return len(r.events) <= maxSmall && r.bytes <= maxSmallBytes }

// append has the request in the redo log, or in the database.
func (j *Journal) append(r *request) error {
	if r.small() {
		j.large.note(r)
	} else {
		defer j.large.begin(r)()
	}
	j.boundLog(r.small())
	if j.Present() == nil && j.ahead.append(r, j.queue) {
		return nil
	}
	err := j.join(r)
	j.ahead.learn(r.events, err)
	return err
}

func (j *Journal) queue(r *request) {
	j.waitingMu.Lock()
	defer j.waitingMu.Unlock()
	j.waiting = append(j.waiting, r)
}

// join has the request committed, by this goroutine or by another one. Where nobody else appends that takes no hand-over
// between goroutines; where others do, run goes on with theirs.
func (j *Journal) join(r *request) error {
	j.queue(r)
	select {
	case err := <-r.reply:
		return err
	case j.leading <- struct{}{}:
	}
	more := false // others who wait select on leading, too
	for len(r.reply) == 0 {
		more = j.commitNext()
	}
	j.passOn(more)
	return <-r.reply
}

// passOn lets run lead if others wait, or else the next one who comes. The caller leads.
func (j *Journal) passOn(more bool) {
	if more {
		j.more <- struct{}{}
	} else {
		<-j.leading
	}
}

// commitNext commits what has waited longest; more says that others wait. The caller leads.
func (j *Journal) commitNext() (more bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	group, more := j.collect()
	for ; j.closed; group, more = j.collect() {
		if answer(group, ErrClosed); !more {
			return false
		}
	}
	if len(group) == 0 { // another one has committed the leader's own
		return false
	}
	left, err := j.writer.commitGroup(group)
	if err := j.ahead.committed(group, left); err != nil {
		j.writer.log.Warn("cannot write the redo log", "error", err)
	}
	if len(left) > 0 {
		j.putBack(left, err)
		return false
	}
	if j.writer.pruner.active {
		j.writer.keepUp()
		wakeUp(j.wake)
	}
	if j.writer.commits >= checkpointEvery || j.logBytes() > checkpointBytes {
		wakeUp(j.full)
	}
	return more
}

// collect takes all that are small, or else the large one. That one lets small ones pass once, and goes with those that
// have come then.
func (j *Journal) collect() (group []*request, more bool) {
	j.waitingMu.Lock()
	defer j.waitingMu.Unlock()
	var rest []*request
	events, bytes := 0, int64(0)
	for _, r := range j.waiting {
		passes := r.small() || r.passed || len(j.waiting) == 1
		r.passed = true
		if !passes || events >= maxGroup || bytes >= maxGroupBytes {
			rest = append(rest, r)
			continue
		}
		group = append(group, r)
		events += len(r.events)
		bytes += r.bytes
	}
	j.waiting = rest
	return group, len(rest) > 0
}

// putBack has what was appended ahead wait for the next commit. All others who wait fail.
func (j *Journal) putBack(left []*request, err error) {
	j.waitingMu.Lock()
	defer j.waitingMu.Unlock()
	all := append(left, j.waiting...)
	answer(all, err)
	j.waiting = slices.DeleteFunc(all, func(r *request) bool { return !r.ahead() })
}

// answer tells those who wait.
func answer(group []*request, err error) {
	for _, r := range group {
		if !r.ahead() {
			r.reply <- err
		}
	}
}

func wakeUp(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is awake
	}
}

// ageCheckEvery is how often an idle journal looks for what is too old.
const ageCheckEvery = time.Minute

// run commits for those who come while others do, and prunes step by step in between, until Close.
func (j *Journal) run() {
	defer close(j.done)
	var log sync.WaitGroup
	log.Go(j.keepLog)
	ticker := time.NewTicker(ageCheckEvery)
	defer ticker.Stop()
	wakeUp(j.wake) // the writer has begun with something to prune
	for {
		var waiter chan pruned
		begin := true
		select {
		case <-j.more:
			j.passOn(j.commitNext())
			continue
		case <-j.queued:
			j.takeLead()
			j.passOn(j.commitNext())
			continue
		case waiter = <-j.prunes:
		case <-ticker.C:
			if j.ahead.lags() { // the disk may have room again
				wakeUp(j.queued)
			}
		case <-j.wake:
			begin = false
		case <-j.quit:
			j.endCheck()
			j.checking.Wait()
			log.Wait()
			j.ahead.stop()
			j.takeLead()
			for j.commitNext() { // what was appended ahead
			}
			j.closeErr = j.finish()
			<-j.leading
			return
		}
		j.takeLead() // appends that wait already go first
		more := j.step(begin, waiter)
		<-j.leading
		if more {
			wakeUp(j.wake)
		}
	}
}

// takeLead leads once nobody else does.
func (j *Journal) takeLead() {
	for {
		select {
		case <-j.more:
			j.passOn(j.commitNext())
		case j.leading <- struct{}{}:
			return
		}
	}
}

// step begins a pass of pruning if it should, and does one step of the one under way; more says that it goes on.
func (j *Journal) step(begin bool, waiter chan pruned) (more bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	w := j.writer
	if begin {
		w.pruner.begin(waiter)
	}
	if !w.pruner.active {
		return false
	}
	if w.condemned == nil && j.logBytes() > maxLogBytes { // it goes on when that is in the file
		wakeUp(j.full)
		return false
	}
	over, err := w.prune()
	if !over {
		return true
	}
	if err == nil && (w.pruner.steps > 0 || w.pruner.owed) {
		err = j.shrink(len(w.pruner.waiters) > 0)
	}
	w.endPass(err)
	return w.pruner.active
}

func (j *Journal) finish() error {
	j.logMu.Lock() // the writing of the log that an Append has begun goes to its end
	defer j.logMu.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
	j.writer.pruner.end(ErrClosed)
	closed := rand.Int64()
	var marked error
	if !j.writer.damaged {
		marked = run(j.writer.do.markClosed, closed)
	}
	err := errors.Join(j.writer.close(), j.ahead.close())
	if j.writer.condemned != nil && j.Present() == nil {
		err = errors.Join(err, condemnClosed(j.dir))
	}
	clean := err == nil && !j.writer.damaged && j.Present() == nil
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
