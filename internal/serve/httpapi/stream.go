package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"strconv"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/turn"
)

const eventStream = "text/event-stream"

// Kinds of server-sent events, beside a gap, that are not events of a turn.
const (
	kindResults = "results"
	kindError   = "error"
)

// stream writes server-sent events (WHATWG HTML, 9.2).
type stream struct {
	w      http.ResponseWriter
	buf    bytes.Buffer
	opened bool
	close  func()
	beat   time.Duration // of comments while there is nothing to say
}

// maxIdleBytes bounds the buffer that a stream keeps while it has nothing to say.
const maxIdleBytes = 4 << 10

// newStream is a stream that opens with what is sent first; close must follow.
func (s *Server) newStream(q *request) *stream {
	st := &stream{w: q.w, beat: s.config.Heartbeat, close: func() {}}
	if p, ok := q.w.(*patientWriter); ok {
		unhook := context.AfterFunc(s.closing, p.curtail)
		st.close = func() { unhook() }
	}
	return st
}

func (st *stream) open() {
	if st.opened {
		return
	}
	st.opened = true
	h := st.w.Header()
	h.Set("Content-Type", eventStream)
	h.Set("X-Accel-Buffering", "no")
	st.w.WriteHeader(http.StatusOK)
	_, _ = st.w.Write([]byte(": toolhost\n\n")) // a client that has gone is found out by the flush
}

// put adds an event to what the next send sends; id 0 means none. That of a gap, too,
// makes a reader that comes back go on behind it.
func (st *stream) put(id int64, kind string, data []byte) {
	if id > 0 {
		st.buf.WriteString("id: " + strconv.FormatInt(id, 10) + "\n")
	}
	st.buf.WriteString("event: " + kind + "\n")
	for line := range bytes.SplitSeq(data, []byte{'\n'}) {
		st.buf.WriteString("data: ")
		st.buf.Write(line)
		st.buf.WriteByte('\n')
	}
	st.buf.WriteByte('\n')
}

// putGap says which events are missing.
func (st *stream) putGap(gap api.Gap) {
	raw, _ := json.Marshal(gap)
	st.put(gap.To, string(api.EventGap), raw)
}

// errGone is why a stream has nobody to send to.
var errGone = errors.New("the client has gone")

// follow sends a turn's events after seq until the turn is over, or there are no
// more and ctx ends: then the error is its cause.
func (st *stream) follow(ctx context.Context, t *turn.Turn, seq int64) error {
	for {
		ended := ctx.Err() != nil // then this look is the last
		beat, cancel := context.WithTimeout(ctx, st.beat)
		last, err := st.pass(beat, t, seq)
		cancel()
		if ended || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		if seq = last; st.opened && st.comment("heartbeat") != nil {
			return errGone
		}
	}
}

// pass sends events, those that are there at once together.
func (st *stream) pass(ctx context.Context, t *turn.Turn, seq int64) (int64, error) {
	for r, err := range t.Events(ctx, seq) {
		if err != nil {
			return seq, err
		}
		seq = r.Event.Seq
		st.put(seq, string(r.Event.Kind), r.JSON)
		if st.buf.Len() < pieceBytes && seq < t.Newest() {
			continue
		}
		if st.send() != nil {
			return seq, errGone
		}
	}
	return seq, nil
}

func (st *stream) send() error {
	st.open()
	_, err := st.w.Write(st.buf.Bytes())
	if st.buf.Reset(); st.buf.Cap() > maxIdleBytes {
		st.buf = bytes.Buffer{}
	}
	if err != nil {
		return err
	}
	return flush(st.w)
}

// sendList sends an event of an object of one list, an element at a time.
func sendList[T any](st *stream, kind, name string, items iter.Seq[T]) error {
	st.buf.WriteString("event: " + kind + "\ndata: ")
	if err := writeList(inPieces{st}, name, items, nil); err != nil { // JSON has no line ends of its own
		return err
	}
	st.buf.WriteString("\n\n")
	return st.send()
}

// inPieces sends what it is given as soon as that is much.
type inPieces struct{ *stream }

// Write implements io.Writer.
func (p inPieces) Write(b []byte) (int, error) {
	p.buf.Write(b)
	if p.buf.Len() < pieceBytes {
		return len(b), nil
	}
	return len(b), p.send()
}

// comment is what readers ignore: it keeps the connection alive, and finds out
// whether somebody is there.
func (st *stream) comment(text string) error {
	st.buf.WriteString(": " + text + "\n\n")
	return st.send()
}
