package httpapi

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/toolhost/toolhost/budget/memory"
	"github.com/toolhost/toolhost/internal/strictjson"
)

const (
	// bodiesBytes is the memory for all bodies under way. One client may have an
	// eighth: a body of the largest size with as many values as it may have.
	bodiesBytes = 256 << 20
	// bodiesPart: they are a quarter of a small daemon's memory at most.
	bodiesPart = 4
	// freeBodyBytes of each body are not counted: small ones never wait.
	freeBodyBytes = 64 << 10
	// copies is how often a body is in memory while it is decoded.
	copies = 2
	// slowBody is how long a body may take while others wait for its memory.
	slowBody = 2 * time.Second
)

// countedBody is a body whose bytes are counted as they come.
type countedBody struct {
	io.ReadCloser
	ctx     context.Context
	control *http.ResponseController
	holder  *memory.Holder

	mu   sync.Mutex
	over bool // nothing more is read
	cut  bool // by cutOff
}

// Read implements io.Reader.
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && b.end() {
		return 0, memory.ErrLost
	}
	if n > 0 {
		if full := b.holder.Take(b.ctx, copies*int64(n)); full != nil {
			return 0, full
		}
	}
	return n, err
}

// cutOff ends the wait for a body that is too slow while others wait.
func (b *countedBody) cutOff() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.over {
		b.cut = true
		_ = b.control.SetReadDeadline(time.Now())
	}
}

// end notes that nothing more is read, and says whether cutOff was before.
func (b *countedBody) end() (cut bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	return b.cut
}

// count has the body of a request be counted for who sends it, and waits until
// there is room for what it is said to have; release gives all of it back.
func (s *Server) count(r *http.Request, w http.ResponseWriter, who caller) (holder *memory.Holder, stop func(), err error) {
	body := &countedBody{ReadCloser: r.Body, ctx: r.Context(), control: http.NewResponseController(w)}
	holder = s.bodies.Hold(bodyKey(r, who), freeBodyBytes, body.cutOff)
	body.holder = holder
	ctx, cancel := context.WithTimeoutCause(r.Context(), s.config.Stall/2, memory.ErrFull) // before the connection's own time is over
	stop = func() { body.end(); holder.Release(); cancel() }
	if r.Body == http.NoBody {
		return holder, stop, nil
	}
	expected := min(max(r.ContentLength, 0), s.config.MaxBodyBytes)
	if err := holder.Reserve(ctx, copies*expected); err != nil {
		stop()
		return nil, nil, noRoom(err)
	}
	r.Body = body
	return holder, stop, nil
}

// bodyKey is the client that an eighth is for: who it is and, by TCP, from where.
func bodyKey(r *http.Request, who caller) string {
	if _, unix := peerOf(r.Context()); unix {
		return who.Name
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return who.Name + " " + host
}

// takeValues counts what decoding a body of so many values takes.
func takeValues(ctx context.Context, holder *memory.Holder, values int) error {
	if err := holder.Take(ctx, int64(values)*strictjson.ValueBytes); err != nil {
		return noRoom(err)
	}
	return nil
}

// noRoom tells a client that it may try again, but for one that has gone.
func noRoom(err error) error {
	if !lacksMemory(err) {
		return err
	}
	return refuse(codeBusy, printable(err.Error()), "send it again in a moment, and fewer large bodies at once")
}

func lacksMemory(err error) bool {
	return errors.Is(err, memory.ErrFull) || errors.Is(err, memory.ErrLost)
}
