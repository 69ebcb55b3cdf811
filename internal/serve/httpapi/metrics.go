package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
)

const (
	// maxScrapes bounds the expositions that are made at once, and
	// maxExpositionBytes each of them.
	maxScrapes         = 4
	maxExpositionBytes = 16 << 20
)

// scrapes are the requests for metrics.
type scrapes struct {
	handler http.Handler  // Config.Metrics
	made    chan struct{} // one for each exposition that is being made
}

func (s *Server) metrics(q *request) error {
	made, err := s.scrapes.expose(q.r)
	if err != nil {
		return err
	}
	maps.Copy(q.w.Header(), made.header)
	q.w.Header().Set("Content-Length", strconv.Itoa(made.body.Len()))
	q.w.WriteHeader(q.route.status)
	_, _ = q.w.Write(made.body.Bytes())
	return nil
}

// expose makes an exposition. It is written afterwards: who reads slowly keeps
// no other from being served.
func (s *scrapes) expose(r *http.Request) (*rendering, error) {
	if s.handler == nil {
		return nil, refuse(codeNotFound, "there are no metrics here", "see /api/openapi.json")
	}
	select {
	case s.made <- struct{}{}:
		defer func() { <-s.made }()
	default:
		return nil, refuse(codeBusy, fmt.Sprintf("%d others ask for the metrics at this moment", maxScrapes), "ask again, and less often")
	}
	made := &rendering{header: http.Header{}, status: http.StatusOK}
	s.handler.ServeHTTP(made, r)
	switch {
	case made.err != nil:
		return nil, made.err
	case made.status != http.StatusOK:
		return nil, fmt.Errorf("the metrics cannot be gathered: status %d", made.status)
	}
	return made, nil
}

// rendering is an answer that is kept.
type rendering struct {
	header http.Header
	status int
	body   bytes.Buffer
	err    error
}

// Header implements http.ResponseWriter.
func (r *rendering) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (r *rendering) WriteHeader(status int) { r.status = status }

// Write implements io.Writer.
func (r *rendering) Write(b []byte) (int, error) {
	if r.body.Len()+len(b) > maxExpositionBytes {
		r.err = errTooManyMetrics
		return 0, r.err
	}
	return r.body.Write(b)
}

var errTooManyMetrics = errors.New("there are too many metrics to show")
