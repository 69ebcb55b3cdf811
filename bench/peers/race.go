package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/cgroup"
)

// race has the contestants take turns.
type race struct {
	options
	groups  *cgroup.Root
	entries []*entry
	servers []*server
	runs    atomic.Int64
	unfit   []string // peers that cannot run on this machine, with the reason
}

// server is a daemon that some contestants share.
type server struct {
	contestant // the first of them
	group      *cgroup.Group
	cmd        *exec.Cmd
}

// entry is a contestant with what it took.
type entry struct {
	contestant
	group *cgroup.Group // all its processes are in it
	// took are the times of single runs back to back, rests those behind a rest each;
	// cpu is the CPU time of a run in each block's mean, ownCPU the part of it that a
	// daemon's own process used.
	took, rests []time.Duration
	cpu, ownCPU []time.Duration
	server      *server
	perSecond   map[int][]float64 // by callers
}

// enter starts the daemons, and has everybody run a few times, since first runs find
// out things that later ones know. A peer that cannot run here is left out; we are not.
func (r *race) enter(ctx context.Context, list []contestant) error {
	for i, c := range list {
		e := &entry{contestant: c, perSecond: map[int][]float64{}}
		err := r.place(ctx, e, i)
		if err == nil && e.begin != nil {
			err = e.begin()
		}
		for n := 0; n < 5 && err == nil; n++ {
			err = r.once(ctx, e)
		}
		switch {
		case err == nil:
			r.entries = append(r.entries, e)
		case e.ours || e.group == nil:
			return fmt.Errorf("%s: %w", c.name, err)
		default:
			r.unfit = append(r.unfit, fmt.Sprintf("%s (%v)", c.name, err))
			if err := r.leave(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// leave has a contestant run no more. A daemon stays until all leave.
func (r *race) leave(e *entry) (err error) {
	if e.end != nil {
		err = e.end()
	}
	if e.server == nil {
		err = errors.Join(err, clear(e.group))
	}
	return err
}

func (r *race) place(ctx context.Context, e *entry, i int) (err error) {
	if e.daemon == nil {
		e.group, err = r.groups.NewGroup("peer"+strconv.Itoa(i), cgroup.Limits{})
		return err
	}
	if e.ours && len(r.servers) > 0 {
		e.server, e.group = r.servers[0], r.servers[0].group
		return nil
	}
	s := &server{contestant: e.contestant}
	if s.group, err = r.groups.NewGroup("server"+strconv.Itoa(i), cgroup.Limits{}); err != nil {
		return err
	}
	r.servers = append(r.servers, s)
	argv := e.daemon(below(s.group))
	s.cmd = exec.Command(argv[0], argv[1:]...)
	s.cmd.Stderr, s.cmd.SysProcAttr = os.Stderr, &syscall.SysProcAttr{}
	if err := s.group.Start(s.cmd.SysProcAttr, s.cmd.Start); err != nil {
		return err
	}
	e.server, e.group = s, s.group
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for err = e.ready(ctx); err != nil && ctx.Err() == nil; err = e.ready(ctx) {
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

// below is the group's path in its hierarchies.
func below(g *cgroup.Group) string {
	path := strings.TrimPrefix(g.Path(), "/sys/fs/cgroup")
	return strings.TrimPrefix(path, "/unified")
}

// once is one run.
func (r *race) once(ctx context.Context, e *entry) error {
	return e.run(ctx, int(r.runs.Add(1)), func(argv ...string) error {
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.SysProcAttr = &syscall.SysProcAttr{}
		var said limited
		cmd.Stderr = &said
		if err := e.group.Start(cmd.SysProcAttr, cmd.Start); err != nil {
			return err
		}
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("%w: %s", err, bytes.TrimSpace(said.text))
		}
		return nil
	})
}

// limited keeps the beginning of what is written.
type limited struct{ text []byte }

func (l *limited) Write(p []byte) (int, error) {
	l.text = append(l.text, p[:min(len(p), 500-len(l.text))]...)
	return len(p), nil
}

func (r *race) run(ctx context.Context) error {
	for round := range r.rounds {
		for i := range r.entries {
			e := r.entries[(i+round)%len(r.entries)]
			if err := errors.Join(r.block(ctx, e), r.rests(ctx, e), r.rates(ctx, e)); err != nil {
				return fmt.Errorf("%s: %w", e.name, err)
			}
		}
	}
	return nil
}

// block is a turn of single runs.
func (r *race) block(ctx context.Context, e *entry) error {
	before, err := e.used()
	if err != nil {
		return err
	}
	for range r.options.block {
		took, err := r.timed(ctx, e)
		if err != nil {
			return err
		}
		e.took = append(e.took, took)
	}
	time.Sleep(50 * time.Millisecond) // what comes behind the last answer is paid for, too
	after, err := e.used()
	n := time.Duration(r.options.block)
	e.cpu = append(e.cpu, (after.all-before.all)/n)
	e.ownCPU = append(e.ownCPU, (after.own-before.own)/n)
	return err
}

// rest is how long nothing is asked for before a paced run.
const rest = 150 * time.Millisecond

// rests are runs that each come behind a rest.
func (r *race) rests(ctx context.Context, e *entry) error {
	for range r.options.paced {
		if !e.paced {
			return nil
		}
		time.Sleep(rest)
		took, err := r.timed(ctx, e)
		if err != nil {
			return err
		}
		e.rests = append(e.rests, took)
	}
	return nil
}

// timed is a run, and how long it took once what it waits for was there.
func (r *race) timed(ctx context.Context, e *entry) (time.Duration, error) {
	if e.await != nil {
		if err := e.await(ctx); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	err := r.once(ctx, e)
	return time.Since(began), err
}

// used is CPU time: of all processes, and of the daemon's own.
type used struct{ all, own time.Duration }

func (e *entry) used() (u used, err error) {
	if u.all, err = e.group.CPU(); err != nil || e.server == nil {
		return u, err
	}
	u.own, err = processCPU(e.server.cmd.Process.Pid)
	return u, err
}

// rates tries how many runs a second come of so many callers. A peer with runs that
// fail has no rate for as many callers.
func (r *race) rates(ctx context.Context, e *entry) error {
	for _, callers := range r.callers {
		var done atomic.Int64
		var failed atomic.Pointer[error]
		var all sync.WaitGroup
		began := time.Now()
		for range callers {
			all.Go(func() {
				for time.Since(began) < r.each && failed.Load() == nil {
					if err := r.once(ctx, e); err != nil {
						failed.Store(&err)
						return
					}
					done.Add(1)
				}
			})
		}
		all.Wait()
		switch err := failed.Load(); {
		case err != nil && e.ours:
			return *err
		case err != nil: // a peer that is not made for so many
			return nil
		}
		e.perSecond[callers] = append(e.perSecond[callers], float64(done.Load())/time.Since(began).Seconds())
	}
	return nil
}

// close ends the daemons, and removes the groups.
func (r *race) close() error {
	var errs []error
	for _, s := range r.servers {
		if s.cmd != nil && s.cmd.Process != nil {
			_ = s.cmd.Process.Signal(syscall.SIGTERM)
			errs = append(errs, s.cmd.Wait())
		}
		errs = append(errs, clear(s.group))
		if s.left != nil {
			errs = append(errs, s.left(below(s.group)))
		}
	}
	for _, e := range r.entries {
		errs = append(errs, r.leave(e))
	}
	return errors.Join(errs...)
}

func clear(g *cgroup.Group) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return errors.Join(g.Kill(), g.WaitEmpty(ctx), g.Remove())
}
