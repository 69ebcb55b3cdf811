package kept

import (
	"context"

	"github.com/toolhost/toolhost/supervisor/internal/filelock"
)

// data is the lock of a tool's files, which a kept process and its calls have
// together. It is exclusive, since what one of them may not write another one may.
type data struct {
	holders   int
	release   func()
	acquiring chan struct{} // closed when that has ended; nil if nobody does
}

// Lock waits for the lock only where no call and no process of the line has it yet, or
// somebody else waits for it, who would never have it if calls went on and on.
func (l *Line) Lock(ctx context.Context) (unlock func(), err error) {
	for {
		has, others := l.joinData()
		if has {
			return l.dropData, nil
		}
		if others == nil {
			return l.acquire(ctx)
		}
		select {
		case <-others:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// joinData shares a lock that is held, or waits for others who are acquiring it. If
// nobody is, the caller acquires it.
func (l *Line) joinData() (has bool, others <-chan struct{}) {
	l.ask(func() {
		switch d := &l.data; {
		case d.acquiring != nil:
			others = d.acquiring
		case d.holders > 0 && !filelock.Awaited(l.lock):
			d.holders++
			has = true
		default:
			d.acquiring = make(chan struct{})
		}
	})
	return has, others
}

func (l *Line) acquire(ctx context.Context) (unlock func(), err error) {
	release, err := filelock.Acquire(ctx, l.lock, false, func() { l.pool.Yield(l.lock) })
	l.ask(func() {
		d := &l.data
		close(d.acquiring)
		d.acquiring = nil
		if err == nil {
			d.holders, d.release = 1, release
		}
	})
	return l.dropData, err
}

// dropData does so also where nothing else is left of the line: what holds the data may be
// a call that could not be killed.
func (l *Line) dropData() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unlock()
}

func (l *Line) unlock() {
	if l.data.holders--; l.data.holders == 0 {
		l.data.release()
	}
}
