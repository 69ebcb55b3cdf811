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

// Stream is a turn's events, as they happen. It is for one goroutine, but for
// Close.
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

// Open begins a turn that lives as long as its stream: closing that, or the
// end of this process, aborts the turn and ends it. The first event names the
// turn.
func (c *Client) Open(ctx context.Context, spec api.TurnSpec) (*Stream, error) {
	return c.open(ctx, http.MethodPost, "/api/turns", spec, 0)
}

// Next waits for the next event. It returns io.EOF after the last one of the
// turn, and another error if the stream broke off: an *api.Error where the daemon
// cannot read the rest.
func (s *Stream) Next() (api.Record, error) {
	frame, err := s.frame()
	if err != nil {
		return api.Record{}, err
	}
	return frame.event()
}

// Close ends the stream; a Next that waits returns an error.
func (s *Stream) Close() error { return s.body.Close() }

// frame is one server-sent event.
type frame struct {
	kind string
	data []byte
}

// frame reads the next one that holds data (WHATWG HTML, 9.2.6).
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

// line reads one, of a bounded length.
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

// Watch shows a turn's events with a seq over after, 0 for all, in order and
// each once, until the turn is over (nil), show returns false (nil), or ctx
// ends (its cause). It connects again where the connection breaks, and goes on
// where it was; the first one must come about. When the daemon says that the turn
// is neither active nor on record, or that the rest cannot be read, that is an *api.Error.
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

// watchOnce shows what one connection brings. It is over if another one would
// bring no more.
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

// isOver says whether a turn is over whose stream has ended without a word: there may be
// nothing behind its last event, or no turn_end on record.
func (c *Client) isOver(ctx context.Context, turnID string) bool {
	_, err := c.Turn(ctx, turnID)
	refused, is := errors.AsType[*api.Error](err)
	return is && refused.Status == http.StatusNotFound
}
