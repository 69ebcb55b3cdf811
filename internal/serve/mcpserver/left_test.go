package mcpserver

import (
	"fmt"
	"testing"
	"time"
)

// counted is a connection that has ended, and says so to a function.
type counted func()

func (c counted) Closed() bool { c(); return true }

// Who comes back while it is found out what is left behind, is not.
func TestComingBackToALeftQuestion(t *testing.T) {
	s := &Server{states: map[string]*call{}}
	asked := 0
	var timers []*time.Timer
	back := func(but *call) { // as all do once the last one is asked about
		for _, c := range s.states {
			if c != but {
				c.parked = nil
			}
		}
	}
	for i := range maxLeft + 2 {
		c := &call{parked: time.AfterFunc(time.Hour, func() {})}
		hears := counted(func() {
			if asked++; asked == maxLeft+2 {
				back(c)
			}
		})
		c.session = &session{loose: true, peer: Peer{"uid 1", &hears}}
		s.states[fmt.Sprint(i)], timers = c, append(timers, c.parked)
	}
	s.endLeft("uid 1")
	if asked < maxLeft+2 {
		t.Errorf("%d were asked about", asked)
	}
	ended := 0
	for _, timer := range timers {
		if !timer.Stop() {
			ended++
		}
	}
	if ended > 1 {
		t.Errorf("%d were ended, and one was left", ended)
	}
}
