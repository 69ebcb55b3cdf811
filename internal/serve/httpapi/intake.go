package httpapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
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
	held    *held

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
		if full := b.held.take(b.ctx, int64(n)); full != nil {
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

// held is what a body has of the memory for all bodies, and of the quota of who sends it.
type held struct {
	memory *memory.Holder
	quota  *memory.Part
	// declared: its length was, so that all of it is in the quota before it comes, and
	// has waited for its turn; of others paced is the wait.
	declared bool
	paced    func(ctx context.Context, bytes int64) error
	// decoded ends this body's turn to be decoded; nil before the turn has begun.
	decoded func()
	// buffer is the body itself.
	buffer *bytes.Buffer
}

// buffers are of large bodies: to clear new memory for each takes longer than to read it.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// room is where a body of so many bytes goes, until release.
func (h *held) room(expected int64) *bytes.Buffer {
	if expected <= freeBodyBytes {
		return new(bytes.Buffer)
	}
	h.buffer = buffers.Get().(*bytes.Buffer)
	h.buffer.Reset()
	return h.buffer
}

// take counts bytes that have come.
func (h *held) take(ctx context.Context, bytes int64) error {
	if !h.declared {
		if err := h.quota.Take(bytes); err != nil {
			return err
		}
		if err := h.paced(ctx, bytes); err != nil {
			return err
		}
	}
	return h.memory.Take(ctx, copies*bytes)
}

// takeValues counts what decoding a body of so many values takes.
func (h *held) takeValues(ctx context.Context, values int) error {
	if err := h.memory.Take(ctx, int64(values)*strictjson.ValueBytes); err != nil {
		return noRoom(err)
	}
	return nil
}

// settle keeps what the body has become until release: so many bytes.
func (h *held) settle(bytes int64) {
	h.done()
	h.memory.Keep(bytes)
}

// release gives all of it back, the body too. It may be called again.
func (h *held) release() {
	h.done()
	h.memory.Release()
}

// done is the end of the body itself.
func (h *held) done() {
	if h.decoded != nil {
		h.decoded()
		h.decoded = nil
	}
	if h.buffer != nil {
		buffers.Put(h.buffer)
		h.buffer = nil
	}
	h.quota.Release()
}

// intake is where bodies are counted that are under way.
type intake struct {
	bodies *memory.Account
	quotas memory.Quotas
	stall  time.Duration // Config.Stall
	pace   pace
	// turns has one for each large body that is being decoded.
	turns chan struct{}
}

func newIntake(stall time.Duration) *intake {
	return &intake{
		bodies: memory.New(memory.Within(bodiesBytes, bodiesPart), slowBody), stall: stall,
		turns: make(chan struct{}, max(1, processors/2)),
	}
}

// processors are those that the runtime has found: the daemon has more threads.
var processors = runtime.GOMAXPROCS(0)

// turn waits until a body of so many bytes may be decoded: large ones leave half of the
// processors to other requests. Those that wait are few, for each has its memory.
func (i *intake) turn(ctx context.Context, bytes int) (done func(), err error) {
	if bytes <= freeBodyBytes {
		return func() {}, nil
	}
	select {
	case i.turns <- struct{}{}:
		return func() { <-i.turns }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// count has the body of a request be counted for who sends it, and waits until
// there is room for what it is said to have, of at most as many bytes as it may have;
// stop gives all of it back.
func (i *intake) count(r *http.Request, w http.ResponseWriter, who caller, most int64) (_ *held, stop func(), err error) {
	body := &countedBody{ReadCloser: r.Body, ctx: r.Context(), control: http.NewResponseController(w)}
	key := bodyKey(r, who)
	h := &held{memory: i.bodies.Hold(key, freeBodyBytes, body.cutOff), quota: i.quotas.Part(who.Name, who.Profile.Quota.BodyBytes)}
	h.paced = func(ctx context.Context, bytes int64) error { return i.pace.wait(ctx, key, bytes) }
	body.held = h
	ctx, cancel := context.WithTimeoutCause(r.Context(), i.stall/2, memory.ErrFull) // before the connection's own time is over
	stop = func() { body.end(); h.release(); cancel() }
	if r.Body == http.NoBody {
		return h, stop, nil
	}
	expected := min(max(r.ContentLength, 0), most)
	h.declared = r.ContentLength > 0
	if err = h.quota.Take(expected); err == nil && expected > freeBodyBytes {
		err = h.paced(ctx, expected)
	}
	if err == nil {
		err = h.memory.Reserve(ctx, copies*expected)
	}
	if err != nil {
		stop()
		return nil, nil, noRoom(err)
	}
	r.Body = body
	return h, stop, nil
}

// bodyKey is who an eighth is for: an identity, wherever it comes from, with its calls, and
// of those who need none each address.
func bodyKey(r *http.Request, who caller) string {
	if of := childrenOf(r.Context()); of != nil {
		return of.owner
	}
	if len(who.Roles) > 0 {
		return who.Name
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return who.Name + " " + host
}

// noRoom tells a client that it may try again, but for one that has gone.
func noRoom(err error) error {
	if over, ok := errors.AsType[*memory.QuotaError](err); ok && over.Never() {
		return refuse(codeTooLarge, printableUpTo(over.Error(), maxRuleRunes), "send less at once")
	} else if ok {
		return refuse(codeQuota, printableUpTo(over.Error(), maxRuleRunes), "send it again when others of yours are answered")
	}
	if !lacksMemory(err) {
		return err
	}
	return refuse(codeBusy, printable(err.Error()), "send it again in a moment, and fewer large bodies at once")
}

func lacksMemory(err error) bool {
	if _, over := errors.AsType[*memory.QuotaError](err); over {
		return true
	}
	return errors.Is(err, memory.ErrFull) || errors.Is(err, memory.ErrLost)
}
