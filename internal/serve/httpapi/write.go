package httpapi

import (
	"net/http"
	"sync"
	"time"
)

// patientWriter gives a client a while to take each piece of an answer, and
// fails if it takes nothing: a reader that has gone to sleep holds no memory
// here for ever.
type patientWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	stall   time.Duration

	mu        sync.Mutex
	curtailed bool
}

// lastPatience is what is left of it for a stream once the daemon ends: what it
// had to say is on record.
const lastPatience = 2 * time.Second

func newPatientWriter(w http.ResponseWriter, stall time.Duration) *patientWriter {
	p := &patientWriter{ResponseWriter: w, control: http.NewResponseController(w), stall: stall}
	p.extend(stall)
	return p
}

// extend moves the limit; a writer without one (of tests) waits for ever.
func (p *patientWriter) extend(by time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.curtailed {
		by = min(by, lastPatience)
	}
	_ = p.control.SetWriteDeadline(time.Now().Add(by))
}

// curtail leaves a client little time from now on.
func (p *patientWriter) curtail() {
	p.mu.Lock()
	p.curtailed = true
	p.mu.Unlock()
	p.extend(lastPatience)
}

const pieceBytes = 64 << 10

// Write implements io.Writer.
func (p *patientWriter) Write(b []byte) (n int, err error) {
	for {
		piece := b[n:min(n+pieceBytes, len(b))]
		p.extend(p.stall)
		m, err := p.ResponseWriter.Write(piece)
		n += m
		if err != nil || n == len(b) {
			return n, err
		}
	}
}

// Unwrap is for http.ResponseController.
func (p *patientWriter) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// flush sends what is buffered.
func flush(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() }
