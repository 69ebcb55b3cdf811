package httpapi

import "github.com/toolhost/toolhost/api"

// fleet is the daemon's.
func (s *Server) fleet() (Fleet, error) {
	if s.config.Fleet == nil {
		return nil, refuse(codeNotFound, "this daemon has no workers", "set fleet in its configuration, see docs/fleet.md")
	}
	return s.config.Fleet, nil
}

func (s *Server) workers(q *request) error {
	f, err := s.fleet()
	if err != nil {
		return err
	}
	return q.answer(f.Workers())
}

func (s *Server) drainWorker(q *request) error {
	f, err := s.fleet()
	if err != nil {
		return err
	}
	name := q.r.PathValue("worker")
	if !f.Drain(name) {
		return notThere(f, name)
	}
	s.note(q.who.on(), "worker.drain", name)
	return q.answer(api.Done{OK: true})
}

func (s *Server) removeWorker(q *request) error {
	f, err := s.fleet()
	if err != nil {
		return err
	}
	name := q.r.PathValue("worker")
	known, err := f.Remove(name)
	switch {
	case err != nil:
		s.config.Logger.Error("a worker cannot be removed", "worker", printable(name), "error", err)
		return refuse(codeUnready, "the worker cannot be removed: "+err.Error(), "see the daemon's log")
	case !known:
		return unknownWorker(name)
	}
	s.note(q.who.on(), "worker.remove", name)
	return q.answer(api.Done{OK: true})
}

func notThere(f Fleet, name string) error {
	if f.Knows(name) {
		return refuse(codeNotFound, "the worker "+printable(name)+" is not there: it has ended, or the daemon has not heard it within the hour", seeWorkers)
	}
	return unknownWorker(name)
}

func unknownWorker(name string) error {
	return refuse(codeNotFound, "the fleet has no worker "+printable(name), seeWorkers)
}

const seeWorkers = "see toolhost fleet workers, or /api/workers"
