package httpapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/toolhost/toolhost/client"
)

const eventStream = "text/event-stream"

// Kinds of server-sent events, beside a gap, that are no events of a turn.
const (
	kindResults = "results"
	kindError   = "error"
)

// stream writes server-sent events (WHATWG HTML, 9.2).
type stream struct {
	w    http.ResponseWriter
	buf  bytes.Buffer
	beat *time.Ticker
}

// maxIdleBytes bounds the buffer that a stream keeps while it has nothing to say.
const maxIdleBytes = 4 << 10

// takeStream takes one of the places for streams, which free gives back.
func (s *Server) takeStream() (free func(), err error) {
	if s.streams.Add(1) > int64(s.config.MaxStreams) {
		s.streams.Add(-1)
		return nil, refuse(codeBusy, "too many streams of events are open", "close some, or ask again later")
	}
	return func() { s.streams.Add(-1) }, nil
}

// openStream answers with a stream.
func (s *Server) openStream(q *request) (*stream, error) {
	h := q.w.Header()
	h.Set("Content-Type", eventStream)
	h.Set("X-Accel-Buffering", "no")
	q.w.WriteHeader(http.StatusOK)
	st := &stream{w: q.w, beat: time.NewTicker(s.config.Heartbeat)}
	return st, st.comment("toolhost")
}

func (st *stream) close() { st.beat.Stop() }

// put adds an event to what the next send sends; id 0 is none.
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

// gap says that some events are not here. Its id makes a reader that comes back
// go on behind it.
func (st *stream) gap(turnID string, from, to int64) {
	raw, _ := json.Marshal(client.Gap{TurnID: turnID, From: from, To: to})
	st.put(to, client.KindGap, raw)
}

func (st *stream) send() error {
	_, err := st.w.Write(st.buf.Bytes())
	if st.buf.Reset(); st.buf.Cap() > maxIdleBytes {
		st.buf = bytes.Buffer{}
	}
	if err != nil {
		return err
	}
	return flush(st.w)
}

// comment is what readers ignore: it keeps the connection alive, and finds out
// whether somebody is there.
func (st *stream) comment(text string) error {
	st.buf.WriteString(": " + text + "\n\n")
	return st.send()
}
