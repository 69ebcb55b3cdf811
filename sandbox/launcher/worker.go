package main

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// worker is one thread that forks. It is kept, for a new one would cost each
// birth its own; it is never the main thread, which as thread group leader
// would be a candidate for the OOM killer of a cgroup that it enters.
type worker struct {
	prepare func() // on the new thread
	jobs    chan job
}

// job returns whether its thread is fit for another one.
type job struct {
	do   func() (fit bool)
	done chan struct{}
}

// run runs do on the worker's thread, and returns when it is done.
func (w *worker) run(do func() (fit bool)) {
	if w.jobs == nil {
		w.jobs = make(chan job)
		go w.serve(w.jobs)
	}
	fit := false
	j := job{do: func() bool { fit = do(); return fit }, done: make(chan struct{})}
	w.jobs <- j
	<-j.done
	if !fit {
		w.jobs = nil // its thread is ending
	}
}

func (w *worker) serve(jobs chan job) {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		w.serveElsewhere(jobs)
		return
	}
	w.prepare()
	for j := range jobs {
		fit := j.do()
		close(j.done)
		if !fit {
			return // and the thread with it
		}
	}
}

// serveElsewhere moves to another thread while this goroutine holds the main
// one, which can't end.
func (w *worker) serveElsewhere(jobs chan job) {
	moved := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		close(moved)
		w.serve(jobs)
	}()
	<-moved
	runtime.UnlockOSThread()
}

// Launchers of tools that are users of their own have no groups beside; those
// that act as the caller keep his.
var (
	plainWorkers     = workersOf(func() {})
	grouplessWorkers = workersOf(func() {
		// Raw: of this thread only. Refused in a namespace that has denied it.
		_, _, _ = unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0)
	})
)

// workerCount lets births go on beside one whose group has a small quota: a
// fork waits for the child's exec.
const workerCount = 8

func workersOf(prepare func()) chan *worker {
	free := make(chan *worker, workerCount)
	for range workerCount {
		free <- &worker{prepare: prepare}
	}
	return free
}
