package cgroup

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// watcher delivers kernel events of many small descriptors with one epoll
// instance, itself waited for by Go's poller, and one goroutine.
//
// Control files such as cgroup.events raise EPOLLPRI when they change. That
// comes before inotify's IN_MODIFY, which the kernel sends from a work queue,
// and needs no inotify instances or watches, which are limited per user.
// Changes within 10 ms of the last one are reported when those are over
// (CGROUP_FILE_NOTIFY_MIN_INTV): look at the state first.
type watcher struct {
	epoll *os.File
	fd    int           // epoll's; asking the File for it would make it blocking
	done  chan struct{} // closed when the goroutine has ended

	mu   sync.Mutex
	next int32
	subs map[int32]func()
}

func newWatcher() (*watcher, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // or os.File would not use the poller
		return nil, errors.Join(err, unix.Close(fd))
	}
	w := &watcher{fd: fd, epoll: os.NewFile(uintptr(fd), "cgroup epoll"), done: make(chan struct{}), subs: map[int32]func(){}}
	conn, err := w.epoll.SyscallConn()
	if err == nil {
		err = w.epoll.SetDeadline(time.Time{}) // fails where the poller doesn't take it
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot poll an epoll descriptor: %w", err), w.epoll.Close())
	}
	go w.run(conn.Read)
	return w, nil
}

// run ends when the epoll descriptor is closed.
func (w *watcher) run(wait func(func(uintptr) bool) error) {
	defer close(w.done)
	events := make([]unix.EpollEvent, 64)
	for {
		n := 0
		err := wait(func(fd uintptr) bool {
			n, _ = retry(func() (int, error) { return unix.EpollWait(int(fd), events, 0) })
			return n > 0
		})
		if err != nil {
			return
		}
		for _, e := range events[:n] {
			w.dispatch(e.Fd)
		}
	}
}

func (w *watcher) dispatch(id int32) {
	w.mu.Lock()
	wake := w.subs[id]
	w.mu.Unlock()
	if wake != nil {
		wake()
	}
}

// add calls wake, on the watcher's goroutine, after each change of fd. A change
// that is pending already counts. wake must not block. It may come once more
// after remove, so it must check its state itself.
func (w *watcher) add(fd int, events uint32, wake func()) (int32, error) {
	w.mu.Lock()
	w.next++
	id := w.next
	w.subs[id] = wake
	w.mu.Unlock()
	// The event's number is ours, not fd: a closed fd may be somebody else's.
	err := unix.EpollCtl(w.fd, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events | unix.EPOLLET, Fd: id})
	if err != nil {
		w.forget(id)
		return 0, os.NewSyscallError("epoll_ctl", err)
	}
	return id, nil
}

// forget ends delivery. The kernel drops the descriptor when it is closed.
func (w *watcher) forget(id int32) {
	w.mu.Lock()
	delete(w.subs, id)
	w.mu.Unlock()
}

// close ends the goroutine and waits for it.
func (w *watcher) close() error {
	err := w.epoll.Close()
	<-w.done
	return err
}
