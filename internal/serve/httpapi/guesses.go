package httpapi

import (
	"crypto/sha256"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// guessBurst wrong tokens may come from one address, and one more each guessPause.
	guessBurst = 20
	guessPause = 3 * time.Second
	// maxGuessers bounds the addresses that are remembered, and maxProven what has
	// been right from one; provenFor is for how long.
	maxGuessers = 4096
	maxProven   = 4096
	provenFor   = 15 * time.Minute
)

// guesses bound how fast tokens can be guessed that operators have made up, and how many
// wrong ones are worth an answer of their own. Who has shown a right one from an
// address goes on beside somebody who guesses there.
type guesses struct {
	now func() time.Time

	mu     sync.Mutex
	by     map[netip.Addr]*rate.Limiter
	proven map[[32]byte]time.Time // until when, by the hash of address and token
}

func newGuesses(now func() time.Time) *guesses {
	return &guesses{now: now, by: map[netip.Addr]*rate.Limiter{}, proven: map[[32]byte]time.Time{}}
}

// of is where guesses are counted together: in IPv6 one client has a whole network.
func of(from netip.Addr) netip.Addr {
	if from.Is6() && !from.Is4In6() {
		if p, err := from.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return from
}

func proof(from netip.Addr, token string) [32]byte {
	return sha256.Sum256([]byte(of(from).String() + "\x00" + token))
}

// wait is for how long a token from there that could be guessed is not looked at; 0 if it is.
func (g *guesses) wait(from netip.Addr, token string) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	l := g.by[of(from)]
	if l == nil || now.Before(g.proven[proof(from, token)]) || l.TokensAt(now) >= 1 {
		return 0
	}
	return time.Duration((1 - l.TokensAt(now)) * float64(guessPause))
}

// wrong counts one that was.
func (g *guesses) wrong(from netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.by[of(from)]
	if l == nil {
		if len(g.by) >= maxGuessers {
			g.forget()
		}
		l = rate.NewLimiter(rate.Every(guessPause), guessBurst)
		g.by[of(from)] = l
	}
	l.AllowN(g.now(), 1)
}

// forget makes room: those go first who have not guessed for a while, then anyone.
func (g *guesses) forget() {
	for from, l := range g.by {
		if l.TokensAt(g.now()) >= guessBurst {
			delete(g.by, from)
		}
	}
	for from := range g.by {
		if len(g.by) < maxGuessers {
			return
		}
		delete(g.by, from)
	}
}

// right notes one that was.
func (g *guesses) right(from netip.Addr, token string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	if len(g.proven) >= maxProven {
		for key, until := range g.proven {
			if !now.Before(until) || len(g.proven) >= maxProven {
				delete(g.proven, key)
			}
		}
	}
	g.proven[proof(from, token)] = now.Add(provenFor)
}
