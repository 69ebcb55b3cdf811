package memory

import (
	"fmt"
	"sync"
)

// Quotas count what each of several owners has in flight. The zero value is ready for
// use, from any goroutine.
type Quotas struct {
	mu sync.Mutex
	of map[string]int64
}

// QuotaError says that an owner has as much in flight as it may. Nobody else is
// concerned.
type QuotaError struct {
	Owner string
	// Bytes are what was asked for beside Used, of Most.
	Bytes, Used, Most int64
}

// Error implements error.
func (e *QuotaError) Error() string {
	if e.Bytes > e.Most {
		return fmt.Sprintf("a body of %d bytes is more than %s may have in flight, which is %d (access: quota: bodies)", e.Bytes, e.Owner, e.Most)
	}
	return fmt.Sprintf("%s has bodies of %d bytes in flight, and with %d more it would have more than its quota of %d (access: quota: bodies)", e.Owner, e.Used, e.Bytes, e.Most)
}

// Never says that what was asked for is more than there ever is.
func (e *QuotaError) Never() bool { return e.Bytes > e.Most }

// Part is what one thing of an owner has. Only one goroutine may use it.
type Part struct {
	quotas *Quotas
	owner  string
	most   int64
	bytes  int64
}

// Part begins with nothing; most bounds all parts of the owner together, 0 does not.
func (q *Quotas) Part(owner string, most int64) *Part {
	return &Part{quotas: q, owner: owner, most: most}
}

// Take counts so many bytes more, or is a *QuotaError.
func (p *Part) Take(bytes int64) error {
	if p.most <= 0 || bytes <= 0 {
		return nil
	}
	q := p.quotas
	q.mu.Lock()
	defer q.mu.Unlock()
	if used := q.of[p.owner]; used+bytes > p.most {
		return &QuotaError{p.owner, bytes, used, p.most}
	}
	if q.of == nil {
		q.of = map[string]int64{}
	}
	q.of[p.owner] += bytes
	p.bytes += bytes
	return nil
}

// Release gives everything back. It may be called again.
func (p *Part) Release() {
	if p.bytes == 0 {
		return
	}
	q := p.quotas
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.of[p.owner] -= p.bytes; q.of[p.owner] <= 0 {
		delete(q.of, p.owner)
	}
	p.bytes = 0
}
