package rpc

import (
	"math"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
)

const protocolError = http2.ConnectionError(http2.ErrCodeProtocol)

// take acts on a frame.
func (c *conn) take(f http2.Frame) error {
	if data, ok := f.(*http2.DataFrame); ok && c.isHeard() {
		return c.takeData(data)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.flush()
	if settings, ok := f.(*http2.SettingsFrame); ok {
		return c.takeSettings(settings)
	}
	if !c.heard { // RFC 9113, 3.4
		return protocolError
	}
	switch f := f.(type) {
	case *http2.MetaHeadersFrame:
		return c.takeHeaders(f)
	case *http2.WindowUpdateFrame:
		return c.takeWindow(f)
	case *http2.RSTStreamFrame:
		return c.takeReset(f)
	case *http2.PingFrame:
		if !f.IsAck() {
			return c.framer.WritePing(true, f.Data)
		}
	case *http2.GoAwayFrame:
		c.takeGoAway(f)
	case *http2.PushPromiseFrame, *http2.DataFrame:
		return protocolError
	}
	return nil // PRIORITY, and what is not known
}

func (c *conn) isHeard() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heard
}

func (c *conn) takeSettings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		if !c.heard {
			return protocolError
		}
		return nil
	}
	if err := f.ForeachSetting(c.set); err != nil {
		return err
	}
	if !c.heard {
		c.heard = true
		if c.greeted != nil {
			c.greeted()
		}
	}
	c.wakeAll()
	return c.framer.WriteSettingsAck()
}

func (c *conn) set(s http2.Setting) error {
	if err := s.Valid(); err != nil {
		return err
	}
	switch s.ID {
	case http2.SettingInitialWindowSize:
		change := int64(s.Val) - c.peer.window
		c.peer.window = int64(s.Val)
		for _, s := range c.streams {
			if s.window += change; s.window > maxWindowBytes {
				return http2.ConnectionError(http2.ErrCodeFlowControl)
			}
		}
	case http2.SettingMaxConcurrentStreams:
		c.peer.streams = s.Val
	case http2.SettingHeaderTableSize:
		c.encoder.SetMaxDynamicTableSizeLimit(min(s.Val, 4096))
	}
	return nil
}

func (c *conn) takeWindow(f *http2.WindowUpdateFrame) error {
	if f.StreamID == 0 {
		if c.window += int64(f.Increment); c.window > maxWindowBytes {
			return http2.ConnectionError(http2.ErrCodeFlowControl)
		}
		c.wakeAll()
		return nil
	}
	if c.isIdle(f.StreamID) {
		return protocolError
	}
	s := c.streams[f.StreamID]
	if s == nil {
		return nil
	}
	if s.window += int64(f.Increment); s.window > maxWindowBytes {
		c.abandon(s, f.StreamID, http2.ErrCodeFlowControl, Errorf(codes.Internal, "the peer gave stream %d too large a window", f.StreamID))
	}
	s.wake.Broadcast()
	return nil
}

func (c *conn) takeReset(f *http2.RSTStreamFrame) error {
	if c.isIdle(f.StreamID) {
		return protocolError
	}
	if s := c.streams[f.StreamID]; s != nil {
		code := codeOfReset(f.ErrCode)
		if code == codes.Canceled && s.isOver() { // the server has looked at the clock a moment earlier
			code = codes.DeadlineExceeded
		}
		s.finish(Errorf(code, "the peer has reset stream %d: %v", f.StreamID, f.ErrCode))
	}
	return nil
}

// takeGoAway: the peer opens no further streams, and takes none. Those that it
// has not looked at have not begun.
func (c *conn) takeGoAway(f *http2.GoAwayFrame) {
	c.leaving = true
	if c.accept != nil {
		return
	}
	for id, s := range c.streams {
		if id > f.LastStreamID {
			s.finish(Errorf(codes.Unavailable, "the peer takes no further streams: %v", f.ErrCode))
		}
	}
	c.wakeAll()
}

func (c *conn) takeHeaders(f *http2.MetaHeadersFrame) error {
	s := c.streams[f.StreamID]
	switch {
	case s != nil && s.ended:
		c.abandon(s, f.StreamID, http2.ErrCodeStreamClosed, Errorf(codes.Internal, "a header list after the stream's end"))
	case s != nil && f.Truncated:
		c.abandon(s, f.StreamID, http2.ErrCodeEnhanceYourCalm, Errorf(codes.Internal, "a header list of more than %d bytes", maxHeaderBytes))
	case s != nil:
		s.takeHeaders(f)
	case c.accept != nil && !c.isIdle(f.StreamID):
		return http2.ConnectionError(http2.ErrCodeStreamClosed)
	case c.accept != nil && f.StreamID%2 == 1:
		return c.accept(f)
	case c.isIdle(f.StreamID):
		return protocolError
	}
	return nil
}

// takeData waits for the memory that the data takes; meanwhile nothing is read.
func (c *conn) takeData(f *http2.DataFrame) error {
	length := int64(f.Length) // with its padding
	c.mu.Lock()
	s, err := c.receiver(f.StreamID, length)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	cost := int64(0)
	if s != nil {
		cost = s.part.cost(f.Data())
		if err := c.o.Received.Take(c.ctx, cost); err != nil {
			c.Fail(err)
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if grant := c.in.credit(length); grant > 0 {
		_ = c.framer.WriteWindowUpdate(0, grant)
	}
	if s != nil {
		s.takeData(f, cost)
	}
	c.flush()
	return nil
}

// receiver is the stream that takes data, nil if there is not one any more.
func (c *conn) receiver(id uint32, length int64) (*Stream, error) {
	if !c.in.use(length) {
		return nil, http2.ConnectionError(http2.ErrCodeFlowControl)
	}
	if c.isIdle(id) {
		return nil, protocolError
	}
	s := c.streams[id]
	switch {
	case s == nil:
		if c.accept != nil { // a client's own end may have crossed it
			c.reset(id, http2.ErrCodeStreamClosed)
		}
		return nil, nil
	case s.ended:
		c.abandon(s, id, http2.ErrCodeStreamClosed, Errorf(codes.Internal, "data after the stream's end"))
		return nil, nil
	case !s.in.use(length):
		c.abandon(s, id, http2.ErrCodeFlowControl, Errorf(codes.Internal, "more data than the stream's window"))
		return nil, nil
	}
	return s, nil
}

// nextID is the id of a client's next stream; false when there are no more.
func (c *conn) nextID() (uint32, bool) {
	switch {
	case c.last == 0:
		return 1, true
	case c.last > math.MaxInt32-2:
		return 0, false
	}
	return c.last + 2, true
}
