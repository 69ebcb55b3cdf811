package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc/codes"

	"github.com/toolhost/toolhost/internal/plugin/handshake"
	"github.com/toolhost/toolhost/internal/plugin/rpc"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/plugin/wirejson"
)

// ProtocolError says that a tool broke toolhost.plugin.v1. Everything that
// came before it is sound.
type ProtocolError struct{ Reason string }

func (e *ProtocolError) Error() string { return "protocol error: " + e.Reason }

// ErrDisconnected says that the connection ended before the call's result.
var ErrDisconnected = errors.New("the tool closed the connection before its result")

// Describe asks the tool's binary what it offers. Errors are of type
// *ProtocolError, ErrDisconnected or ctx's.
func (c *Conn) Describe(ctx context.Context) (*pluginv1.DescribeResponse, error) {
	response := &pluginv1.DescribeResponse{}
	if err := c.invoke(ctx, "Describe", &pluginv1.DescribeRequest{}, response, handshake.MaxMessageBytes); err != nil {
		return nil, c.explain(ctx, err)
	}
	return response, nil
}

// Call runs one tool and hands each event to sink, in order, on this goroutine,
// with the time when its decoding began; sink must be quick, for while it runs
// the tool is held back. The result is an event like the others. Call returns
// nil if the stream ended properly after exactly one result, and otherwise
// *ProtocolError, ErrDisconnected or ctx's cause. It ends when the process dies;
// ctx is for giving up after that.
func (c *Conn) Call(ctx context.Context, request *pluginv1.CallRequest, sink func(*pluginv1.CallEvent, time.Time)) error {
	events, err := c.open(ctx, "Call", request, handshake.MaxMessageBytes)
	if err != nil {
		return c.explain(ctx, err)
	}
	defer events.close()
	if err := check(func() (*pluginv1.CallEvent, error) {
		event := &pluginv1.CallEvent{}
		return event, events.receive(event)
	}, func(e *pluginv1.CallEvent) { sink(e, events.began) }); err != nil {
		return c.explain(ctx, err)
	}
	return nil
}

// check hands on the sound events of a call.
func check(next func() (*pluginv1.CallEvent, error), sink func(*pluginv1.CallEvent)) error {
	var checker eventChecker
	for {
		event, err := next()
		if errors.Is(err, io.EOF) {
			return checker.ended()
		}
		if err != nil {
			return err
		}
		if err := checker.check(event); err != nil {
			return err
		}
		sink(event)
	}
}

// eventChecker holds a call's stream to the protocol.
type eventChecker struct {
	seq    uint64
	result bool
}

func (c *eventChecker) check(event *pluginv1.CallEvent) error {
	_, isResult := event.GetEvent().(*pluginv1.CallEvent_Result)
	switch {
	case c.result && isResult:
		return &ProtocolError{"a second result"}
	case c.result:
		return &ProtocolError{"data after the result"}
	case event.GetEvent() == nil:
		return &ProtocolError{fmt.Sprintf("event %d holds nothing that this host knows", event.GetSeq())}
	case event.GetSeq() != c.seq+1:
		return &ProtocolError{fmt.Sprintf("event %d came after event %d", event.GetSeq(), c.seq)}
	}
	c.seq++
	c.result = isResult
	return checkJSON(event)
}

// checkJSON refuses what claims to be JSON and is not.
func checkJSON(event *pluginv1.CallEvent) error {
	switch e := event.GetEvent().(type) {
	case *pluginv1.CallEvent_Content:
		return checkContent(e.Content)
	case *pluginv1.CallEvent_Ask:
		for _, request := range e.Ask.GetRequests() {
			if err := valid("an ask's request", request.GetParams()); err != nil {
				return err
			}
		}
		return valid("an ask's schema", e.Ask.GetSchema())
	case *pluginv1.CallEvent_Result:
		for _, content := range e.Result.GetContent() {
			if err := checkContent(content); err != nil {
				return err
			}
		}
		for what, raw := range map[string][]byte{
			"the structured result": e.Result.GetStructured(), "a result's meta": e.Result.GetMeta(), "an error of its protocol": e.Result.GetError().GetRpc(),
		} {
			if err := valid(what, raw); err != nil {
				return err
			}
		}
	case *pluginv1.CallEvent_Log:
		if err := valid("a log's meta", e.Log.GetMeta()); err != nil {
			return err
		}
		return valid("the value of a log", e.Log.GetData())
	}
	return nil
}

func checkContent(content *pluginv1.Content) error {
	switch c := content.GetContent().(type) {
	case nil:
		return &ProtocolError{"content of no kind that this host knows"}
	case *pluginv1.Content_Json:
		if len(c.Json) == 0 {
			return &ProtocolError{"JSON content is empty"}
		}
		if err := valid("JSON content", c.Json); err != nil {
			return err
		}
	case *pluginv1.Content_Resource:
		if c.Resource == nil {
			return &ProtocolError{"a resource in the content is empty"}
		}
	}
	return valid("a block's further fields", content.GetExtra())
}

func valid(what string, raw []byte) error {
	if len(raw) == 0 {
		return nil
	}
	switch err := wirejson.Check(raw); {
	case err == nil, wirejson.IsUnfit(err): // which is for the call to mind
		return nil
	case !utf8.Valid(raw):
		return &ProtocolError{what + " is not UTF-8"}
	}
	return &ProtocolError{what + " is not valid JSON"}
}

func (c *eventChecker) ended() error {
	if c.result {
		return nil
	}
	return &ProtocolError{"the stream ended without a result"}
}

// explain tells what an error of a call means.
func (c *Conn) explain(ctx context.Context, err error) error {
	explained := explainStatus(ctx, err)
	if !errors.Is(explained, ErrDisconnected) {
		return explained
	}
	if said := c.wire.complaint(c.client.Silent()); said != "" {
		return &ProtocolError{fmt.Sprintf("the tool's socket %s %s, which is not gRPC: serve toolhost.plugin.v1 on it before the handshake line is printed, as plugin.Serve does", c.socket, said)}
	}
	if broken := c.client.Broken(); broken != "" {
		return &ProtocolError{"the host has ended the connection to the tool: " + broken}
	}
	return explained
}

// explainStatus tells a broken protocol from a broken connection.
func explainStatus(ctx context.Context, err error) error {
	if _, broken := errors.AsType[*ProtocolError](err); broken {
		return err
	}
	if own, failed := errors.AsType[*failure](err); failed && ctx.Err() == nil {
		return own.error
	}
	if _, full := errors.AsType[*MemoryError](err); full {
		return err
	}
	s := rpc.StatusOf(err)
	if s.Code == codes.DeadlineExceeded && endsNow(ctx) { // gRPC keeps our deadline on the tool's side, too
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	switch s.Code {
	case codes.Unavailable, codes.Canceled, codes.Aborted:
		return ErrDisconnected
	case codes.ResourceExhausted:
		return &ProtocolError{"a message is too large: " + s.Message}
	case codes.Unimplemented:
		return &ProtocolError{"the binary does not serve toolhost.plugin.v1: " + s.Message}
	}
	return &ProtocolError{fmt.Sprintf("the tool answered with gRPC status %s: %s", s.Code, s.Message)}
}

// endsNow: the deadline is here, but for what timers and clocks differ by.
func endsNow(ctx context.Context) bool {
	at, ok := ctx.Deadline()
	return ok && time.Until(at) < 100*time.Millisecond
}

// Watch hands on what an adapter's server announces, until ctx or the stream ends.
func (c *Conn) Watch(ctx context.Context, tell func(method string, params json.RawMessage)) error {
	notices, err := c.open(ctx, "Watch", &pluginv1.WatchRequest{}, handshake.MaxMessageBytes)
	if err != nil {
		return c.explain(ctx, err)
	}
	defer notices.close()
	for {
		notice := &pluginv1.Notice{}
		if err := notices.receive(notice); err != nil {
			return c.explain(ctx, err)
		}
		params, err := wirejson.Clean(notice.GetParams())
		if notice.GetMethod() == "" || len(notice.GetParams()) > maxNoticeBytes || len(notice.GetParams()) > 0 && err != nil {
			continue
		}
		tell(notice.GetMethod(), params)
	}
}

// maxNoticeBytes bounds what of a notification is passed on.
const maxNoticeBytes = 64 << 10

// Cancel asks a call to end; the tool may be deaf to it.
func (c *Conn) Cancel(ctx context.Context, callID, reason string) error {
	return c.invoke(ctx, "Cancel", &pluginv1.CancelRequest{CallId: callID, Reason: reason}, &pluginv1.CancelResponse{}, answerBytes)
}

// Acknowledge tells the tool that its events up to seq are stored.
func (c *Conn) Acknowledge(ctx context.Context, callID string, seq uint64) error {
	return c.invoke(ctx, "Acknowledge", &pluginv1.AcknowledgeRequest{CallId: callID, Seq: seq}, &pluginv1.AcknowledgeResponse{}, answerBytes)
}

// Answer brings the answer to a tool's question.
func (c *Conn) Answer(ctx context.Context, answer *pluginv1.AnswerRequest) error {
	return c.invoke(ctx, "Answer", answer, &pluginv1.AnswerResponse{}, answerBytes)
}
