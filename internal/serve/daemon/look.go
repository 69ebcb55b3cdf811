package daemon

import (
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/internal/tools/config"
)

// lookLimit bounds how long granted paths may block the daemon: it has signals and a
// watchdog to answer, and other tools.
const lookLimit = 5 * time.Second

// look is one at what tools are granted, which may be on a file system that does not
// answer.
type look struct {
	going atomic.Int32
	at    atomic.Value // the name of a tool
}

// maxLooks bounds those that go on at a time, since each of those that are stuck holds a
// thread. A later configuration may be without the path that does not answer.
const maxLooks = 3

// run runs check, which says which tool it is at. It is false if check has no answer in
// time, and goes on, or if too many before it do.
func (l *look) run(check func(at func(tool string)) error) (answered bool, err error) {
	if l.going.Add(1) > maxLooks {
		l.going.Add(-1)
		return false, nil
	}
	found := make(chan error, 1)
	go func() {
		err := check(func(tool string) { l.at.Store(tool) })
		l.going.Add(-1)
		found <- err
	}()
	select {
	case err := <-found:
		return true, err
	case <-time.After(lookLimit):
		return false, nil
	}
}

// checkGrants is CheckGrants for as long as paths answer. Each call checks its own
// grants again, so that none goes unchecked.
func (d *daemon) checkGrants(loaded *config.Loaded) error {
	answered, err := d.look.run(func(at func(string)) error { return checkTools(loaded, d.options.State, at) })
	if !answered {
		d.logger.Warn("what tools are granted is not checked, for a granted path does not answer: reload once it does", "tool", d.look.at.Load())
	}
	return err
}
