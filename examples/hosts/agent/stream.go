package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
)

const (
	// maxLineBytes bounds a line of a stream, maxEventBytes an event: that of
	// the Responses API that ends a stream holds all of the response.
	maxLineBytes  = 8 << 20
	maxEventBytes = 8 << 20
	// maxStreamBytes bounds a whole stream, and so all that is gathered of it.
	maxStreamBytes = 32 << 20
)

// events gives the data of each event of a stream of server-sent events; an
// error is the last it gives. The types of events are left out, as all three
// APIs repeat them in the data. An event that the stream's end cuts off is
// dropped, as https://html.spec.whatwg.org/multipage/server-sent-events.html
// wants it. Lines end with LF or CR LF; no API uses a lone CR.
func events(body io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		lines := bufio.NewScanner(http.MaxBytesReader(nil, io.NopCloser(body), maxStreamBytes))
		lines.Buffer(nil, maxLineBytes)
		var data []byte
		for lines.Scan() {
			line := lines.Bytes()
			if value, ok := dataOf(line); ok {
				data = append(append(data, value...), '\n')
			}
			if len(data) > maxEventBytes {
				yield(nil, fmt.Errorf("an event of the stream has more than %d bytes", maxEventBytes))
				return
			}
			if len(line) == 0 && len(data) > 0 {
				if !yield(data[:len(data)-1], nil) {
					return
				}
				data = nil
			}
		}
		if err := lines.Err(); err != nil {
			yield(nil, streamError(err))
		}
	}
}

// dataOf returns the value of a line of data, not of other fields and
// comments.
func dataOf(line []byte) (value []byte, ok bool) {
	field, value, _ := bytes.Cut(bytes.TrimPrefix(line, []byte("\ufeff")), []byte(":"))
	return bytes.TrimPrefix(value, []byte(" ")), string(field) == "data"
}

// streamError says which bound was passed.
func streamError(err error) error {
	if errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("a line of the stream has more than %d bytes", maxLineBytes)
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return fmt.Errorf("the stream has more than %d bytes", maxStreamBytes)
	}
	return fmt.Errorf("the stream broke off: %w", err)
}

// gather feeds a stream to a reply until that is complete.
func gather(body io.Reader, r reply) error {
	for data, err := range events(body) {
		if err != nil {
			return err
		}
		if done, err := r.take(data); done || err != nil {
			return err
		}
	}
	return nil
}

// checkStream refuses an answer that is not a stream of events.
func checkStream(h http.Header) error {
	kind, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	if kind != "text/event-stream" {
		return fmt.Errorf("the server answers with %q instead of a stream of events: is it the right --api and --base-url?", h.Get("Content-Type"))
	}
	return nil
}
