package openapi

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
)

// Handler holds all that next is asked, and answers, to the document. report is told
// what is not as it should be, on the goroutine of the request.
func (d *Document) Handler(next http.Handler, report func(error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := &recorder{ResponseWriter: w}
		asked, sent := r.Clone(r.Context()), &bytes.Buffer{}
		if r.Body != http.NoBody {
			body := r.Body
			r.Body = struct {
				io.Reader
				io.Closer
			}{io.TeeReader(body, sent), body}
		}
		ended := false
		defer func() {
			x := Exchange{asked, sent.Bytes(), seen.status, seen.Header(), seen.body.Bytes(), seen.cut || !ended}
			if seen.status == 0 {
				return // it has panicked before there was an answer
			}
			if err := d.Check(x); err != nil {
				report(err)
			}
		}()
		next.ServeHTTP(seen, r)
		ended = true
		seen.status = cmp.Or(seen.status, http.StatusOK)
	})
}

// recorder keeps an answer beside writing it.
type recorder struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
	cut    bool
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) {
	r.status = cmp.Or(r.status, status)
	r.ResponseWriter.WriteHeader(status)
}

// Write implements io.Writer.
func (r *recorder) Write(b []byte) (int, error) {
	r.status = cmp.Or(r.status, http.StatusOK)
	n, err := r.ResponseWriter.Write(b)
	r.body.Write(b[:n])
	r.cut = r.cut || err != nil
	return n, err
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// Transport holds the exchanges of a client to the document, each when the client closes
// the answer, as far as it was read.
func (d *Document) Transport(by http.RoundTripper, report func(error)) http.RoundTripper {
	return transport{d, by, report}
}

type transport struct {
	d      *Document
	by     http.RoundTripper
	report func(error)
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	var sent []byte
	if r.Body != nil && r.GetBody != nil {
		again, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		if sent, err = io.ReadAll(again); err != nil {
			return nil, err
		}
	}
	response, err := t.by.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	read := &reader{ReadCloser: response.Body}
	read.done = func() {
		if err := t.d.Check(Exchange{r, sent, response.StatusCode, response.Header, read.body.Bytes(), !read.ended}); err != nil {
			t.report(err)
		}
	}
	response.Body = read
	return response, nil
}

// reader keeps what is read of an answer.
type reader struct {
	io.ReadCloser
	body  bytes.Buffer
	ended bool
	done  func()
}

// Read implements io.Reader.
func (r *reader) Read(b []byte) (int, error) {
	n, err := r.ReadCloser.Read(b)
	r.body.Write(b[:n])
	r.ended = r.ended || err == io.EOF //nolint:errorlint // readers return it as it is
	return n, err
}

// Close implements io.Closer.
func (r *reader) Close() error {
	r.done()
	return r.ReadCloser.Close()
}
