package httpapi

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// patientBody gives a client a while for each piece of its body, and fails if
// nothing comes in that time.
type patientBody struct {
	io.ReadCloser
	control *http.ResponseController
	stall   time.Duration
}

// newPatientBody also bounds the wait for a body that no handler reads: net/http
// reads the rest of it before it writes the answer.
func newPatientBody(body io.ReadCloser, control *http.ResponseController, stall time.Duration) io.ReadCloser {
	if body == http.NoBody {
		return body
	}
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
		_ = p.control.SetReadDeadline(time.Time{})
	}
	return n, err
}
