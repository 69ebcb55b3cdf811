package journal

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// Bounds of what shares a commit: no request waits long for those before it.
const (
	maxSmall      = 8   // events of one request that others take along
	maxGroup      = 128 // events of more than one
	maxGroupBytes = 4 << 20
)

// commit has the request committed, by this goroutine or by another one. Where nobody else appends that takes no
// hand-over between goroutines; where others do, run goes on with theirs.
func (j *Journal) commit(r *request) error {
	j.waitingMu.Lock()
	j.waiting = append(j.waiting, r)
	j.waitingMu.Unlock()
	select {
	case err := <-r.reply:
		return err
	case j.leading <- struct{}{}:
	}
	more := true
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
	j.writer.commitGroup(group)
	if j.writer.pruner.active {
		j.writer.keepUp()
		wakeUp(j.wake)
	}
	if j.writer.commits >= checkpointEvery || j.writer.logged >= checkpointBytes {
		wakeUp(j.full)
	}
	return more
}

// collect takes the one that has waited longest, and all others that are small: those of a turn with a thousand calls
// come one by one, and keep nobody waiting for more than one of them.
func (j *Journal) collect() (group []*request, more bool) {
	j.waitingMu.Lock()
	defer j.waitingMu.Unlock()
	var rest []*request
	events, bytes := 0, int64(0)
	for i, r := range j.waiting {
		if i > 0 && (len(r.events) > maxSmall || events >= maxGroup || bytes >= maxGroupBytes) {
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

func answer(group []*request, err error) {
	for _, r := range group {
		r.reply <- err
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
		case waiter = <-j.prunes:
		case <-ticker.C:
		case <-j.wake:
			begin = false
		case <-j.quit:
			j.endCheck()
			j.checking.Wait()
			log.Wait()
			j.takeLead()
			j.closeErr = j.finish()
			<-j.leading
			return
		}
		if j.step(begin, waiter) {
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

// shrink has the log written to the file, which only then shrinks; wait until it is. j is locked, and is not meanwhile.
func (j *Journal) shrink(wait bool) error {
	if !wait {
		wakeUp(j.full)
		return nil
	}
	j.mu.Unlock()
	defer j.mu.Lock()
	return j.checkpoint()
}

// keepLog writes the log to the file whenever there is much of it, until Close.
func (j *Journal) keepLog() {
	for {
		select {
		case <-j.full:
			if err := j.checkpoint(); err != nil {
				j.writer.log.Warn("cannot write the journal's log to its file", "error", err)
			}
		case <-j.quit:
			return
		}
	}
}

const (
	// checkpointEvery is after how many commits the log is written to the file, and
	// checkpointBytes after how much that was appended.
	checkpointEvery = 256
	checkpointBytes = 8 << 20
	// maxLogPages bounds the log that commits and reads may go on beside; with more of
	// it they wait until it can begin anew.
	maxLogPages = 4096
)

// checkpoint writes the log to the file, which only then shrinks, beside commits: it waits for the disk. Passive: it
// waits for no reader, and where one was in the way the rest is owed to the next pass of pruning.
func (j *Journal) checkpoint() error {
	j.mu.Lock()
	j.writer.commits, j.writer.logged = 0, 0
	condemned := j.writer.condemned != nil
	j.mu.Unlock()
	if condemned {
		return nil
	}
	inLog, owed, err := j.writer.database.checkpoint()
	if err == nil && owed && inLog > maxLogPages {
		owed, err = j.emptyLog(inLog)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.writer.pruner.owed = err != nil || owed
	return err
}

// emptyLog writes all of the log to the file, so that it can begin anew: the readers of this process give way, and
// then commits, for what these have written meanwhile. Where they write faster than the disk, for all of it.
func (j *Journal) emptyLog(inLog int64) (owed bool, err error) {
	j.readers.Lock()
	defer j.readers.Unlock()
	if inLog < 2*maxLogPages {
		if _, _, err := j.writer.database.checkpoint(); err != nil {
			return true, err
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	_, owed, err = j.writer.database.checkpoint()
	return owed, err
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
