package call

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/plugin/handshake"
	"github.com/toolhost/toolhost/internal/stack"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
	"github.com/toolhost/toolhost/supervisor/internal/pace"
	"github.com/toolhost/toolhost/supervisor/internal/prepare"
	"github.com/toolhost/toolhost/supervisor/internal/publish"
	"github.com/toolhost/toolhost/supervisor/spec"
)

const (
	// maxQuestions bounds those of one call that wait for an answer.
	maxQuestions = handshake.MaxQuestions
	// maxReplies bounds the answers that wait for a tool to take them.
	maxReplies = 64
	// cancelTimeout bounds the wait for a tool's answer to Cancel.
	cancelTimeout = time.Second
)

// tool is the tool at the other end, which is talked to without ever holding up the
// owner. Acknowledgements are cumulative, so only the newest waits.
type tool struct {
	callID    string
	conn      Peer                   // nil until it answers
	questions int                    // that wait for an answer
	reaches   int                    // questions about names that have no answer yet
	reached   map[string]spec.Answer // about names that are not granted
	ack       chan uint64
	answers   chan *pluginv1.AnswerRequest
	stop      context.CancelFunc
	served    *sync.WaitGroup
}

func newTool(callID string) tool {
	return tool{callID: callID, ack: make(chan uint64, 1), answers: make(chan *pluginv1.AnswerRequest, maxReplies), served: new(sync.WaitGroup)}
}

// serve begins with the first that is to be sent.
func (t *tool) serve() {
	if t.stop != nil {
		return
	}
	var ctx context.Context
	ctx, t.stop = context.WithCancel(context.Background())
	conn := t.conn
	t.served.Go(func() {
		for {
			select {
			case seq := <-t.ack:
				_ = conn.Acknowledge(ctx, t.callID, seq)
			case answer := <-t.answers:
				_ = conn.Answer(ctx, answer)
			case <-ctx.Done():
				return
			}
		}
	})
}

// acknowledge is called in rising order.
func (t *tool) acknowledge(seq uint64) {
	select {
	case <-t.ack:
	default:
	}
	t.ack <- seq
	t.serve()
}

// reply hands an answer over; false if too many wait already.
func (t *tool) reply(answer *pluginv1.AnswerRequest) bool {
	select {
	case t.answers <- answer:
		t.serve()
		return true
	default:
		return false
	}
}

func (t *tool) close() {
	if t.stop != nil {
		t.stop()
	}
	t.served.Wait()
}

// stream does the call's work over the connection and hands every event to the
// owner as soon as it is there: what was received survives any kill.
func (c *Call) stream(ctx context.Context, conn Peer, request *pluginv1.CallRequest) {
	stack.Shallow()
	if c.p.Describes() {
		response, err := conn.Describe(ctx)
		c.send(streamEnded{err, response})
		return
	}
	reader := pace.Pace{Load: c.Load}
	err := conn.Call(ctx, request, func(event *pluginv1.CallEvent, began time.Time) {
		c.send(sent{event, clean(event, request.GetMethod() == "")})
		reader.Spent(time.Since(began), c.ending.Load())
	})
	c.send(streamEnded{err: err})
}

// cancel asks the tool to end, if it has answered.
func (o *owner) cancel() {
	if o.tool.conn == nil {
		return
	}
	conn, id, reason := o.tool.conn, o.p.ID, string(o.found.Reason)
	o.helpers.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cancelTimeout)
		defer cancel()
		_ = conn.Cancel(ctx, id, reason)
	})
}

// onEvent records one event of the tool.
func (o *owner) onEvent(event *pluginv1.CallEvent, of cleaned, now time.Time) {
	o.onCleaned(of)
	switch e := event.GetEvent().(type) {
	case *pluginv1.CallEvent_Heartbeat:
		o.clock.Heartbeat(now)
		return
	case *pluginv1.CallEvent_Content:
		o.keepSent(e.Content)
	case *pluginv1.CallEvent_Progress:
		o.events.Note(api.Event{
			Kind: api.EventProgress, Status: api.StatusRunning, ElapsedMs: o.clock.Elapsed(now).Milliseconds(),
			Fraction: validFraction(e.Progress.Fraction), Message: o.p.Mask.Text(e.Progress.GetMessage()),
		})
	case *pluginv1.CallEvent_Log:
		o.events.Note(api.Event{Kind: api.EventLog, Message: o.p.Mask.Text(e.Log.GetMessage()), Log: o.logEntry(e.Log)})
	case *pluginv1.CallEvent_Flush:
		o.tool.acknowledge(event.GetSeq())
	case *pluginv1.CallEvent_Ask:
		o.onAsk(e.Ask, of.ask, now)
	case *pluginv1.CallEvent_Result:
		o.onResult(e.Result, now)
	}
	o.clock.Message(now)
}

// validFraction drops an infinite fraction or NaN, which JSON cannot carry.
func validFraction(fraction *float64) *float64 {
	if fraction == nil || !(*fraction >= 0 && *fraction <= 1) {
		return nil
	}
	return fraction
}

func (o *owner) onResult(result *pluginv1.Result, now time.Time) {
	o.wordCommand(result)
	for _, content := range result.GetContent() {
		o.keepSent(content)
	}
	o.onExitStatus(result)
	o.found.Final = result
	o.settle(now)
}

// keepSent keeps and counts content that a plugin has sent.
func (o *owner) keepSent(sent *pluginv1.Content) {
	content := contentOf(sent)
	o.output.count(content.Bytes())
	if most := int(o.p.Bounds.OutputBytes / 2); content.Type == "text" && len(content.Extra) > most {
		o.warnLeftOut(withoutFields, fmt.Errorf("a text has %d bytes of them, over the %d that half of `output` is", len(content.Extra), most))
		content.Extra = nil
	}
	o.content.keep(content)
}

// onAsk puts a tool's question to the asker that the request names. The call's
// clocks stand still until the answer.
func (o *owner) onAsk(ask *pluginv1.Ask, unfit error, now time.Time) {
	refusal := ""
	switch {
	case o.p.Request.Ask == nil:
		refusal = api.OutcomeHeadless
	case unfit != nil:
		refusal = "the question cannot be passed on: " + unfit.Error()
	case o.state != stateRunning:
		refusal = api.OutcomeCancelled
	}
	if refusal != "" {
		if !o.tool.reply(answerOf(o.p.ID, ask.GetInteractionId(), spec.Answer{Denied: refusal})) {
			o.stop(outcome.CauseProtocol, api.ReasonTooManyQuestions, now)
		}
		return
	}
	if o.tool.questions == maxQuestions {
		o.stop(outcome.CauseProtocol, api.ReasonTooManyQuestions, now)
		return
	}
	o.tool.questions++
	o.clock.Paused(now)
	o.moveTimer(now)
	question := spec.Question{
		ID: ask.GetInteractionId(), Prompt: o.p.Mask.Text(ask.GetPrompt()), Schema: o.p.Mask.JSON(ask.GetSchema()),
		Timeout: wished(ask.GetTimeoutMs()), Secret: ask.GetSecret(),
		Requests: o.clientRequests(ask.GetRequests()),
	}
	o.helpers.Go(func() { o.put(question) })
}

// wished is how long a tool would like to wait for an answer. Any number is a wish: who is
// asked has a bound for it.
func wished(ms int64) time.Duration {
	return max(0, min(prepare.Milliseconds(ms), budget.Infinite-1))
}

// logEntry is nil for a message of a tool's own.
func (o *owner) logEntry(l *pluginv1.Log) *api.LogEntry {
	if l.GetSeverity() == "" {
		return nil
	}
	return &api.LogEntry{
		Level: publish.CutWord(l.GetSeverity()), Logger: o.p.Mask.Text(publish.CutWord(l.GetLogger())), Data: o.p.Mask.JSON(publish.ShortLog(l.GetData())), Meta: o.p.Mask.JSON(publish.ShortLog(l.GetMeta())),
	}
}

func (o *owner) clientRequests(of map[string]*pluginv1.ClientRequest) map[string]spec.ClientRequest {
	if len(of) == 0 {
		return nil
	}
	list := map[string]spec.ClientRequest{}
	for key, one := range of {
		list[key] = spec.ClientRequest{Method: one.GetMethod(), Params: o.p.Mask.JSON(one.GetParams())}
	}
	return list
}
