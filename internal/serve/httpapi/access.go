package httpapi

import (
	"net/http"
	"strings"
)

// guarded lets through what comes from a place that may ask at all.
func (s *Server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		patient := newPatientWriter(w, s.config.Stall, connOf(r.Context()))
		// Of what is refused, too, net/http reads the rest of the body, and only
		// then does it write the answer.
		defer patient.extend(2 * s.config.Stall)
		if r.Body != http.NoBody {
			body := newPatientBody(r.Body, patient.control, s.config.Stall)
			r.Body = body
			defer body.linger()
		}
		defer s.recovered(patient, r)
		harden(patient.Header())
		s.secure(patient.Header(), r)
		if err := s.checkPlace(r); err != nil {
			fail(patient, err)
			return
		}
		next.ServeHTTP(patient, r)
	})
}

// recovered answers for a handler that panicked.
func (s *Server) recovered(w http.ResponseWriter, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler {
		panic(p)
	}
	s.config.Logger.Error("bug: a request made its handler panic", "method", r.Method, "path", printable(r.URL.Path), "panic", p)
	fail(w, refuse(codeInternal, "bug: the request could not be handled", "see the daemon's log"))
}

// harden tells browsers to do nothing clever with an answer.
func harden(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
}

// fallback answers all that is not a route: the pages of the console, which are the same
// for everybody and open nothing by themselves.
func (s *Server) fallback(w http.ResponseWriter, r *http.Request) {
	if s.config.Pages == nil || strings.HasPrefix(r.URL.Path, "/api/") || r.URL.Path == "/api" {
		fail(w, refuse(codeNotFound, "there is nothing at "+printable(r.URL.Path), "see /api/openapi.json"))
		return
	}
	if _, err := s.authenticate(r, true); err != nil { // a user who may not connect
		fail(w, err)
		return
	}
	s.config.Pages.ServeHTTP(w, r)
}

// mounted serves what speaks another protocol to those who may use it.
func (s *Server) mounted(w http.ResponseWriter, r *http.Request, m Mount) {
	who, err := s.admit(r, m.Need, false)
	if err != nil {
		fail(w, err)
		return
	}
	_, stop, err := s.intake.count(r, w, who, s.config.MaxBodyBytes)
	if err != nil {
		fail(w, err)
		return
	}
	defer stop()
	ctx, end := s.whileKnown(r.Context(), who)
	defer end()
	m.Handler.ServeHTTP(w, r.WithContext(withCaller(ctx, who, s.intake)))
}
