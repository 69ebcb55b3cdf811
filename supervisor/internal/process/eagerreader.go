package process

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// eagerReader reads a pipe to its end and can tell, while the pipe is still
// open, that all has been taken which was written before. One goroutine reads.
type eagerReader struct {
	file  *os.File
	ended func() // called at the end

	mu      sync.Mutex
	over    bool
	waiting []chan struct{} // closed when the pipe is found empty
}

func newEagerReader(file *os.File, ended func()) *eagerReader {
	return &eagerReader{file: file, ended: ended}
}

// past is a deadline that wakes a reader at once.
var past = time.Unix(1, 0)

// empty returns a channel that is closed when the reader comes back and finds
// nothing more: what was written before empty was called has then been handled.
func (r *eagerReader) empty() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := make(chan struct{})
	if r.over || r.file.SetReadDeadline(past) != nil {
		close(found)
		return found
	}
	r.waiting = append(r.waiting, found)
	return found
}

func (r *eagerReader) Read(p []byte) (int, error) {
	for {
		asked := 0
		n, err := r.file.Read(p)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			asked = r.asked()
			n, err = readNow(r.file, p)
		}
		switch {
		case errors.Is(err, syscall.EAGAIN):
			r.foundEmpty(asked)
			continue
		case err != nil:
			r.end()
		}
		return n, err
	}
}

// readNow reads without waiting, whatever the deadline says.
func readNow(file *os.File, p []byte) (n int, err error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return 0, err
	}
	if outer := raw.Control(func(fd uintptr) { n, err = syscall.Read(int(fd), p) }); outer != nil {
		return 0, outer
	}
	if n == 0 && err == nil && len(p) > 0 {
		err = io.EOF
	}
	return max(n, 0), err
}

// asked is how many wait already.
func (r *eagerReader) asked() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting)
}

// foundEmpty answers those who had asked before the pipe was looked at. For who
// has come since it is looked at once more.
func (r *eagerReader) foundEmpty(asked int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer(asked)
	if len(r.waiting) == 0 {
		_ = r.file.SetReadDeadline(time.Time{})
	}
}

func (r *eagerReader) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.over = true
		r.answer(len(r.waiting))
		r.ended()
	}
}

// answer tells the first n that wait.
func (r *eagerReader) answer(n int) {
	for _, found := range r.waiting[:n] {
		close(found)
	}
	r.waiting = r.waiting[n:]
}
