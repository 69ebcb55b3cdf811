package httpapi

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// patientWriter fails an answer whose client has taken nothing for stall: a reader that has gone
// to sleep must not hold memory for ever.
type patientWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	stall   time.Duration
	conn    net.Conn

	mu        sync.Mutex
	curtailed bool
	writing   bool        // something waits for the client, maybe
	unsent    int         // at the last look
	timer     *time.Timer // for the next one
}

// looks is how often within its stall a client is looked at. A socket can be written to only
// when much of what is in it was taken, which a slow client may need longer for.
const looks = 4

// lastPatience is what is left of it for a stream once the daemon ends: what it
// had to say is on record.
const lastPatience = 2 * time.Second

func newPatientWriter(w http.ResponseWriter, stall time.Duration, conn net.Conn) *patientWriter {
	p := &patientWriter{ResponseWriter: w, control: http.NewResponseController(w), stall: stall, conn: conn}
	p.extend(stall)
	return p
}

// extend moves the limit; a writer without one (of tests) waits for ever.
func (p *patientWriter) extend(by time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move(by)
}

// move is extend for who holds the lock.
func (p *patientWriter) move(by time.Duration) {
	if p.curtailed {
		by = min(by, lastPatience)
	}
	_ = p.control.SetWriteDeadline(time.Now().Add(by))
}

// begin is for what may wait for the client; end must follow.
func (p *patientWriter) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move(p.stall)
	p.writing = true
	if p.timer == nil {
		p.timer = time.AfterFunc(p.stall/looks, p.look)
	} else {
		p.timer.Reset(p.stall / looks)
	}
}

func (p *patientWriter) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writing = false
	p.timer.Stop()
}

// look moves the limit if the client has taken anything since the last one.
func (p *patientWriter) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.writing {
		return
	}
	if now := unsent(p.conn); now != p.unsent {
		p.unsent = now
		p.move(p.stall)
	}
	p.timer.Reset(p.stall / looks)
}

// curtail leaves a client little time from now on.
func (p *patientWriter) curtail() {
	p.mu.Lock()
	p.curtailed = true
	p.mu.Unlock()
	p.extend(lastPatience)
}

const (
	pieceBytes = 64 << 10
	// writeBytes are written at once: a unix socket tells only of whole pieces that
	// they were taken, and of no larger ones.
	writeBytes = 16 << 10
)

// Write implements io.Writer.
func (p *patientWriter) Write(b []byte) (n int, err error) {
	defer p.end()
	for {
		piece := b[n:min(n+writeBytes, len(b))]
		p.begin()
		m, err := p.ResponseWriter.Write(piece)
		n += m
		if err != nil || n == len(b) {
			return n, err
		}
	}
}

// FlushError is for http.ResponseController.
func (p *patientWriter) FlushError() error {
	defer p.end()
	p.begin()
	return p.control.Flush()
}

// Unwrap is for http.ResponseController.
func (p *patientWriter) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// flush sends what is buffered.
func flush(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() }
