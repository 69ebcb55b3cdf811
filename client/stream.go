package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/toolhost/toolhost/api"
)

// Stream is the stream of a turn's events, as they happen. Only Close is safe for
// concurrent use.
type Stream struct {
	ctx  context.Context
	body io.ReadCloser
	in   *bufio.Reader
}

// maxFrameBytes bounds one server-sent event; the results of a batch are one.
const maxFrameBytes = 256 << 20

func (c *Client) open(ctx context.Context, method, path string, body any, after int64) (*Stream, error) {
	header := http.Header{"Accept": {"text/event-stream"}}
	if after > 0 {
		header.Set("Last-Event-ID", strconv.FormatInt(after, 10))
	}
	response, err := c.send(ctx, method, path, body, header)
	if err != nil {
		return nil, err
	}
	if kind := response.Header.Get("Content-Type"); kind != "text/event-stream" {
		response.Body.Close()
		return nil, fmt.Errorf("the daemon answered with %q instead of a stream of events", kind)
	}
	return &Stream{ctx: ctx, body: response.Body, in: bufio.NewReader(response.Body)}, nil
}

// Open begins a turn that lives as long as its stream: closing the stream, or the
// end of this process, aborts and ends the turn. The first event has the turn's
// ID.
func (c *Client) Open(ctx context.Context, spec api.TurnSpec) (*Stream, error) {
	return c.open(ctx, http.MethodPost, "/api/turns", spec, 0)
}

// Next waits for the next event. It returns io.EOF after the turn's last event.
// Any other error means that the stream is incomplete; it is an *api.Error if the
// daemon cannot read the rest.
func (s *Stream) Next() (api.Record, error) {
	frame, err := s.frame()
	if err != nil {
		return api.Record{}, err
	}
	return frame.event()
}

// Close closes the stream. A blocked Next returns an error.
func (s *Stream) Close() error { return s.body.Close() }

// frame is one server-sent event.
type frame struct {
	kind string
	data []byte
}

// frame reads the next frame with data (WHATWG HTML, 9.2.6).
func (s *Stream) frame() (f frame, err error) {
	for {
		line, err := s.line(maxFrameBytes - len(f.data))
		if err != nil {
			return frame{}, err
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case len(line) == 0 && f.data != nil:
			return f, nil
		case len(line) == 0:
			f = frame{}
		case string(name) == "event":
			f.kind = string(value)
		case string(name) == "data" && f.data == nil:
			f.data = value
		case string(name) == "data":
			f.data = append(append(f.data, '\n'), value...)
		}
	}
}

// line reads one line, of at most limit bytes.
func (s *Stream) line(limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := s.in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > limit:
			return nil, fmt.Errorf("an event of the daemon has more than %d bytes", maxFrameBytes)
		case err == nil:
			return bytes.TrimRight(line, "\r\n"), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, s.broken(err)
		}
	}
}

// broken tells the end of a stream from its loss.
func (s *Stream) broken(err error) error {
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	return err
}

func (f frame) event() (e api.Record, err error) {
	if f.kind == "error" {
		return e, f.failure()
	}
	if f.kind == string(api.EventGap) {
		e.Kind, e.Gap = api.EventGap, &api.Gap{}
		err = json.Unmarshal(f.data, e.Gap)
		e.TurnID, e.Seq = e.Gap.TurnID, e.Gap.To
	} else {
		e.JSON = f.data
		err = json.Unmarshal(f.data, &e.Event)
	}
	if err != nil {
		return e, fmt.Errorf("cannot read an event of the daemon: %w", err)
	}
	return e, nil
}

// failure is the error that ends a stream.
func (f frame) failure() error {
	var failure api.Failure
	if err := json.Unmarshal(f.data, &failure); err != nil {
		return fmt.Errorf("cannot read an error of the daemon: %w", err)
	}
	return &failure.Error
}

// retryAfter is how long Watch waits before it connects again.
const retryAfter = 500 * time.Millisecond

// Watch calls show with a turn's events whose seq is greater than after, 0 for all,
// in order and each once. It returns nil when the turn is over or show returns false,
// and ctx's cause when ctx ends. If the connection breaks, Watch reconnects and
// resumes; it fails only if the first connection does. The error is an *api.Error if
// the turn is unknown to the daemon, or its remaining events cannot be read.
func (c *Client) Watch(ctx context.Context, turnID string, after int64, show func(api.Record) bool) error {
	for connected := false; ; {
		s, err := c.open(ctx, http.MethodGet, endpoint("/api/turns/", turnID, "/events"), nil, after)
		_, refused := errors.AsType[*api.Error](err)
		switch {
		case err == nil:
			connected = true
			if over, err := c.watchOnce(ctx, s, turnID, &after, show); over {
				return err
			}
		case !connected || refused || ctx.Err() != nil:
			return err
		}
		select {
		case <-time.After(retryAfter):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// watchOnce shows the events of one connection. over means that another connection
// would not have more.
func (c *Client) watchOnce(ctx context.Context, s *Stream, turnID string, after *int64, show func(api.Record) bool) (over bool, err error) {
	defer s.Close()
	for none := true; ; none = false {
		e, err := s.Next()
		if none && errors.Is(err, io.EOF) && c.isOver(ctx, turnID) {
			return true, nil
		}
		if err != nil {
			_, failed := errors.AsType[*api.Error](err)
			return failed || ctx.Err() != nil, err
		}
		*after = e.Seq
		if !show(e) || e.Kind == api.EventTurnEnd {
			return true, nil
		}
	}
}

// isOver reports whether a turn is over whose stream ended without an event: the reader may
// have had the last one already, or the journal lacks turn_end.
func (c *Client) isOver(ctx context.Context, turnID string) bool {
	_, err := c.Turn(ctx, turnID)
	refused, is := errors.AsType[*api.Error](err)
	return is && refused.Status == http.StatusNotFound
}
