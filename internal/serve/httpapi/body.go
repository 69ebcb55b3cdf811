package httpapi

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// lingerTime is how long a client that was answered before it had sent all of
// its body may go on sending.
const lingerTime = 5 * time.Second

// patientBody gives a client a while for each piece of its body, and fails if
// nothing comes in that time.
type patientBody struct {
	io.ReadCloser
	control *http.ResponseController
	stall   time.Duration
	ended   bool // all of it was read
}

// newPatientBody also bounds the wait for a body that no handler reads: net/http
// reads the rest of it before it writes the answer.
func newPatientBody(body io.ReadCloser, control *http.ResponseController, stall time.Duration) *patientBody {
	p := &patientBody{ReadCloser: body, control: control, stall: stall}
	p.extend()
	return p
}

// extend moves the limit; a connection without one (of tests) waits for ever.
func (p *patientBody) extend() { _ = p.control.SetReadDeadline(time.Now().Add(p.stall)) }

// Read implements io.Reader.
func (p *patientBody) Read(b []byte) (n int, err error) {
	p.extend()
	n, err = p.ReadCloser.Read(b)
	if errors.Is(err, io.EOF) {
		// From here on reading only finds out whether the client is still there.
		p.ended = true
		_ = p.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// linger writes the answer and drops what the client still sends: closing a
// connection that has unread bytes can take the answer from the client (RFC
// 9112, section 9.6).
func (p *patientBody) linger() {
	if p.ended || p.control.Flush() != nil {
		return
	}
	_ = p.control.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.Copy(io.Discard, p.ReadCloser)
}
