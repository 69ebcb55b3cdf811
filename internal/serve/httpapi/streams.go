package httpapi

import (
	"fmt"
	"sync"
)

// streams are the places for streams of events.
type streams struct {
	most int

	mu  sync.Mutex
	all int
	by  map[string]int // identity
}

func newStreams(most int) *streams { return &streams{most: most, by: map[string]int{}} }

// take takes a place for an identity, which free gives back. It may have as many as are
// left, so that the last is out of anyone's reach, and no more than its quota.
func (s *streams) take(who caller) (free func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own, quota := s.by[who.Name], who.Profile.Quota.Streams
	switch {
	case quota > 0 && own >= quota:
		return nil, refuse(codeQuota, fmt.Sprintf("%s has %d streams of events open, which are its quota (access: quota: streams)", who.Name, own), "close some, and ask again then")
	case own >= s.most-s.all:
		return nil, refuse(codeBusy, "too many streams of events are open", "close some, or ask again later")
	}
	s.all++
	s.by[who.Name]++
	return func() { s.give(who.Name) }, nil
}

func (s *streams) give(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.by[name]--; s.by[name] == 0 {
		delete(s.by, name)
	}
}
