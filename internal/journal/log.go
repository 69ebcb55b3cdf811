package journal

import (
	"os"
	"path/filepath"
	"time"
)

// keepLog writes the log to the file whenever there is much of it, until Close.
func (j *Journal) keepLog() {
	for {
		select {
		case <-j.full:
			j.tellLog(j.checkpoint())
			wakeUp(j.wake) // pruning may have waited for that
		case <-j.quit:
			return
		}
	}
}

const (
	// checkpointEvery is after how many commits the log is written to the file, and
	// checkpointBytes with how much of it: more than what is left of one that begins anew.
	checkpointEvery = 256
	checkpointBytes = 9 << 20
	// emptyBytes bounds the log that commits and reads may go on beside; with more of
	// it they wait until it can begin anew.
	emptyBytes = 32 << 20
	// maxLogBytes bounds the log beside the writing of it: with more, pruning and large
	// requests wait for the disk, and with twice as much all requests.
	maxLogBytes = 32 << 20
	// shortWait is how long commits may be held up while the log is emptied. To stay below it, the log is written to the
	// file up to maxBeside times before, without holding them up.
	shortWait = 10 * time.Millisecond
	maxBeside = 4
)

// logSize is that of the log's file. When the log begins anew it is cut.
func (j *Journal) logSize() int64 {
	info, err := os.Stat(filepath.Join(j.dir, DatabaseName+"-wal"))
	if err != nil {
		return 0
	}
	return info.Size()
}

// logBytes is what has come to the log since it was last written to the file.
func (j *Journal) logBytes() int64 {
	size, then := j.logSize(), j.written.Load()
	if size < then { // it has begun anew
		j.written.CompareAndSwap(then, 0)
		return size
	}
	return size - then
}

// boundLog writes the log to the file before a request if there is too much of it.
func (j *Journal) boundLog(small bool) {
	most := int64(maxLogBytes)
	if small {
		most *= 2
	}
	if j.logBytes() <= most {
		return
	}
	j.logMu.Lock()
	defer j.logMu.Unlock()
	if j.logBytes() > most { // no other one has written it meanwhile
		j.tellLog(j.checkpointLog())
	}
}

func (j *Journal) tellLog(err error) {
	if err != nil {
		j.writer.log.Warn("cannot write the journal's log to its file", "error", err)
	}
}

// checkpoint writes the log to the file, which only then shrinks, beside commits: it waits for the disk. Passive: it
// waits for no reader, and where one was in the way the rest is owed to the next pass of pruning.
func (j *Journal) checkpoint() error {
	j.logMu.Lock()
	defer j.logMu.Unlock()
	return j.checkpointLog()
}

// checkpointLog is checkpoint with logMu held.
func (j *Journal) checkpointLog() error {
	j.mu.Lock()
	j.writer.commits = 0
	over := j.closed || j.writer.condemned != nil
	j.mu.Unlock()
	if over {
		return nil
	}
	size := j.logSize()
	owed, err := j.writer.database.checkpoint()
	j.written.Store(size)
	if now := j.logSize(); err == nil && now > emptyBytes && (owed || now > size) {
		owed, err = j.emptyLog()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.writer.pruner.owed = err != nil || owed
	return err
}

// emptyLog writes all of the log to the file, so that it can begin anew: the readers of this process give way, and
// then commits, for what these have written meanwhile, which should be little.
func (j *Journal) emptyLog() (owed bool, err error) {
	j.readers.Lock()
	defer j.readers.Unlock()
	for took, tries := shortWait, 0; took >= shortWait && tries < maxBeside; tries++ {
		began := time.Now()
		if _, err := j.writer.database.checkpoint(); err != nil {
			return true, err
		}
		took = time.Since(began)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	owed, err = j.writer.database.checkpoint()
	j.written.Store(j.logSize())
	return owed, err
}

// shrink has the log written to the file, which only then shrinks; wait until it is. The caller leads, and j is locked;
// neither is so meanwhile.
func (j *Journal) shrink(wait bool) error {
	if !wait {
		wakeUp(j.full)
		return nil
	}
	j.mu.Unlock()
	<-j.leading
	defer func() {
		j.takeLead()
		j.mu.Lock()
	}()
	return j.checkpoint()
}
