package mcpserver

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget/memory"
	"github.com/toolhost/toolhost/internal/strictjson"
)

const (
	// maxSessions bounds the sessions at once, where an identity may have as
	// many as are free, and sessionIdle how long one lives without a request.
	maxSessions = 512
	sessionIdle = time.Hour

	sessionHeader = "Mcp-Session-Id"
	versionHeader = "Mcp-Protocol-Version"
	nameHeader    = "Mcp-Name"
	// requestHeader carries the number of a request to its handler; what a
	// client sends under the name is overwritten.
	requestHeader = "Toolhost-Mcp-Request"
)

// Handler serves streamable HTTP at whatever path it is mounted at. It trusts
// every client that reaches it: which may do so, from which host and origin, and
// how slowly, is for the server around it to check. A client that goes away ends
// its calls.
func (s *Server) Handler() http.Handler { return s.handler }

func (s *Server) newHandler() http.Handler {
	options := func(stateless bool) *mcpsdk.StreamableHTTPOptions {
		return &mcpsdk.StreamableHTTPOptions{
			Stateless: stateless, PropagateRequestCancellation: true, SessionTimeout: sessionIdle,
			MaxRequestBodyBytes: maxMessageBytes, DisableLocalhostProtection: true,
		}
	}
	server := func(*http.Request) *mcpsdk.Server { return s.sdk }
	sessions := unlessEmpty(mcpsdk.NewStreamableHTTPHandler(server, options(false)))
	single := unlessEmpty(mcpsdk.NewStreamableHTTPHandler(server, options(true)))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.Clone(r.Context())
		r.Header.Del(requestHeader)
		w.Header().Set("X-Accel-Buffering", "no") // or nginx holds events back, questions among them
		var posted []*jsonrpc.Request
		if r.Method == http.MethodPost {
			said := &jsonErrors{ResponseWriter: w}
			defer said.finish()
			w = said
			var ok bool
			if posted, ok = readBody(w, r); !ok {
				return
			}
			said.posted = posted
		}
		if f := otherVersion(r.Header.Get(versionHeader), posted); f != nil {
			f.answer(w)
			return
		}
		if r.Header.Get(versionHeader) >= multiRound {
			decodeName(r.Header)
			single.ServeHTTP(w, r)
			return
		}
		if f := tooEarly(posted...); f != nil && r.Header.Get(sessionHeader) == "" {
			http.Error(w, f.text, http.StatusBadRequest)
			return
		}
		s.serveSession(sessions, w, r)
	})
}

// decodeName has the SDK compare what a name in Base64 means: it decodes the headers of
// parameters, but not this one.
func decodeName(h http.Header) {
	encoded, begins := strings.CutPrefix(h.Get(nameHeader), "=?base64?")
	encoded, ends := strings.CutSuffix(encoded, "?=")
	if name, err := base64.StdEncoding.DecodeString(encoded); begins && ends && err == nil {
		h.Set(nameHeader, string(name))
	}
}

// unlessEmpty has a handler serve what is posted, and accepts where readBody has left
// nothing of it.
func unlessEmpty(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.Body == http.NoBody {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// serveSession serves a request of a session, or one that begins a session.
func (s *Server) serveSession(sessions http.Handler, w http.ResponseWriter, r *http.Request) {
	id, identity := r.Header.Get(sessionHeader), peerOf(r.Context()).Identity
	switch {
	case id != "" && !s.owns(identity, id):
		http.Error(w, "session not found", http.StatusNotFound) // also where it is another's: its id tells nothing
		return
	case r.Method == http.MethodDelete:
		s.abortSession(id) // the SDK waits for what runs
	case r.Method == http.MethodPost && id == "" && !s.mayConnect(identity):
		http.Error(w, "too many sessions: end some, or wait until one is idle for an hour", http.StatusServiceUnavailable)
		return
	case r.Method == http.MethodPost:
		if !s.answers() {
			http.Error(w, errClosed.Error(), http.StatusServiceUnavailable)
			return
		}
		defer s.answering.Done()
	}
	key := rand.Text()
	s.requests.Store(key, r.Context())
	defer s.requests.Delete(key)
	r.Header.Set(requestHeader, key)
	sessions.ServeHTTP(w, r)
}

// refuseBody answers a request whose body could not be read.
func refuseBody(w http.ResponseWriter, err error) {
	_, tooLarge := errors.AsType[*http.MaxBytesError](err)
	quota, over := errors.AsType[*memory.QuotaError](err)
	full := errors.Is(err, memory.ErrFull) || errors.Is(err, memory.ErrLost)
	if full || over {
		w.Header().Set("Retry-After", "2")
	}
	switch {
	case tooLarge:
		http.Error(w, fmt.Sprintf("the body has more than %d bytes: send less at once", maxMessageBytes), http.StatusRequestEntityTooLarge)
	case full:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	case over:
		http.Error(w, quota.Error(), http.StatusTooManyRequests)
	case errors.Is(err, os.ErrDeadlineExceeded):
		http.Error(w, "the body did not come in time: send it faster", http.StatusRequestTimeout)
	default:
		http.Error(w, "the body could not be read: send all of it", http.StatusBadRequest)
	}
}

// readBody reads what is posted as strictly as what comes over a pipe, and leaves out
// notifications that nobody knows: the SDK refuses these. It is false if that was not a
// message, which is answered; posted are its requests and notifications.
func readBody(w http.ResponseWriter, r *http.Request) (posted []*jsonrpc.Request, ok bool) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessageBytes))
	if err != nil {
		refuseBody(w, err)
		return nil, false
	}
	done, err := decoding(r.Context(), len(raw))
	if err != nil { // who has gone
		return nil, false
	}
	defer done()
	if err := strictjson.Message(raw); strictjson.TooMany(err) {
		http.Error(w, err.Error()+": send less at once", http.StatusRequestEntityTooLarge)
		return nil, false
	}
	messages, batch := messagesOf(raw)
	others := false
	var kept []json.RawMessage
	for _, one := range messages {
		m, changed, f := readMessageAs(one)
		if f != nil {
			f.answer(w)
			return nil, false
		}
		others = others || changed
		if request, ok := m.(*jsonrpc.Request); ok {
			if _, known := methods[request.Method]; !known && !request.IsCall() {
				others = true
				continue
			}
			posted = append(posted, request)
		}
		if changed {
			one, _ = jsonrpc.EncodeMessage(m) // which was decoded from JSON
		}
		kept = append(kept, one)
	}
	switch {
	case !others:
		kept = []json.RawMessage{raw}
	case len(kept) == 0:
		r.Body, r.ContentLength = http.NoBody, 0
		return nil, true
	case batch:
		kept[0], _ = json.Marshal(kept) // of JSON
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(kept[0])), int64(len(kept[0]))
	return posted, true
}

// messagesOf are those of a batch, or the one. Whether the version of the protocol
// has batches, the SDK knows.
func messagesOf(raw []byte) (messages []json.RawMessage, batch bool) {
	if bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("[")) && json.Unmarshal(raw, &messages) == nil {
		return messages, true
	}
	return []json.RawMessage{raw}, false
}

// whenDisconnected calls f when the HTTP request ends before its answer, which
// the SDK does not care for before 2026-07-28: nobody can come back for it.
func (s *Server) whenDisconnected(r *mcpsdk.CallToolRequest, f func()) (stop func()) {
	if r.Extra == nil || r.Extra.Header == nil {
		return func() {}
	}
	ctx, ok := s.requests.Load(r.Extra.Header.Get(requestHeader))
	if !ok {
		return func() {}
	}
	forget := context.AfterFunc(ctx.(context.Context), f)
	return func() { forget() }
}

// abortSession ends the calls of a session that is to end.
func (s *Server) abortSession(id string) {
	s.mu.Lock()
	var all []*call
	for c := range s.active {
		if id != "" && c.session.id == id {
			all = append(all, c)
		}
	}
	s.mu.Unlock()
	for _, c := range all {
		c.abort(api.ReasonDisconnect)
	}
}

// answers says whether requests are still answered, and then counts this one.
func (s *Server) answers() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.answering.Add(1)
	}
	return !s.ended
}

// slowClient is how long the end of the sessions waits for clients that take
// nothing.
const slowClient = 5 * time.Second

// endSessions ends the sessions over HTTP; that of stdio ends with its pipes. What the
// SDK has not written when it closes a session is lost.
func (s *Server) endSessions() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	atMost(slowClient, s.answering.Wait)
	atMost(slowClient, s.closeSessions)
}

func (s *Server) closeSessions() {
	var all sync.WaitGroup
	for one := range s.sdk.Sessions() {
		if one.ID() != "" {
			all.Go(func() { _ = one.Close() })
		}
	}
	all.Wait()
}

// atMost waits for f, but not for longer than that.
func atMost(limit time.Duration, f func()) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		f()
	}()
	select {
	case <-over:
	case <-time.After(limit):
	}
}
