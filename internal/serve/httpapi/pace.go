package httpapi

import (
	"context"
	"sync"

	"golang.org/x/time/rate"

	"github.com/toolhost/toolhost/budget/memory"
)

const (
	// paceBurst of a client's bodies are taken at once: two of the largest. Then it is
	// paceBytes a second for each processor, since to copy and decode more of them takes
	// the processors from the calls of others.
	paceBurst = 16 << 20
	paceBytes = 32 << 20
	// maxPaces bounds the clients that are told apart; others are one.
	maxPaces = 4096
)

// pace is how fast the bodies of each client are taken. The zero value has seen none.
type pace struct {
	mu sync.Mutex
	of map[string]*rate.Limiter
}

// wait is until a client's next bytes may come. A body whose turn does not come in time is
// one that there is no room for.
func (p *pace) wait(ctx context.Context, client string, bytes int64) error {
	if err := p.limiter(client).WaitN(ctx, int(min(bytes, paceBurst))); err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return memory.ErrFull
}

func (p *pace) limiter(client string) *rate.Limiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of[client] == nil && len(p.of) >= maxPaces {
		p.forget()
		if len(p.of) >= maxPaces {
			client = ""
		}
	}
	l := p.of[client]
	if l == nil {
		if p.of == nil {
			p.of = map[string]*rate.Limiter{}
		}
		l = rate.NewLimiter(rate.Limit(paceBytes*processors), paceBurst)
		p.of[client] = l
	}
	return l
}

// forget drops those who may send as much as if they had sent nothing.
func (p *pace) forget() {
	for client, l := range p.of {
		if l.Tokens() >= paceBurst {
			delete(p.of, client)
		}
	}
}
