package supervisor

import (
	"context"
	"encoding/json"
	"mime"
	"sync"
	"time"

	"github.com/toolhost/toolhost/api"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor/internal/capture"
	"github.com/toolhost/toolhost/supervisor/internal/pace"
)

// stream does the call's work over the connection and hands every event to the
// owner as soon as it is there: what was received survives any kill.
func (c *Call) stream(ctx context.Context, conn Peer, request *pluginv1.CallRequest) {
	if c.p.Describes() {
		response, err := conn.Describe(ctx)
		c.send(input{kind: inStreamEnded, response: response, err: err})
		return
	}
	reader := pace.Pace{Load: c.s.gate.Load}
	err := conn.Call(ctx, request, func(event *pluginv1.CallEvent) {
		began := time.Now()
		c.send(input{kind: inEvent, judged: judge(event), event: event})
		reader.Spent(time.Since(began), c.ending.Load())
	})
	c.send(input{kind: inStreamEnded, err: err})
}

// onEvent records one event of the tool.
func (c *Call) onEvent(in input, now time.Time) {
	event := in.event
	c.onJudged(in.judged)
	switch e := event.GetEvent().(type) {
	case *pluginv1.CallEvent_Heartbeat:
		c.clock.Heartbeat(now)
		return
	case *pluginv1.CallEvent_Content:
		c.keepSent(e.Content)
	case *pluginv1.CallEvent_Progress:
		c.events.Note(api.Event{
			Kind: api.EventProgress, Status: api.StatusRunning, ElapsedMs: c.clock.Elapsed(now).Milliseconds(),
			Fraction: sane(e.Progress.Fraction), Message: c.p.Veil.Text(e.Progress.GetMessage()),
		})
	case *pluginv1.CallEvent_Log:
		c.events.Note(api.Event{Kind: api.EventLog, Message: c.p.Veil.Text(e.Log.GetMessage())})
	case *pluginv1.CallEvent_Flush:
		c.acks.acknowledge(event.GetSeq())
	case *pluginv1.CallEvent_Ask:
		c.onAsk(e.Ask, in.judged.ask, now)
	case *pluginv1.CallEvent_Result:
		c.onResult(e.Result, now)
	}
	c.clock.Message(now)
}

// sane drops an infinite fraction or NaN, which JSON cannot carry.
func sane(fraction *float64) *float64 {
	if fraction == nil || !(*fraction >= 0 && *fraction <= 1) {
		return nil
	}
	return fraction
}

func (c *Call) onResult(result *pluginv1.Result, now time.Time) {
	c.wordCommand(result)
	for _, content := range result.GetContent() {
		c.keepSent(content)
	}
	c.onExitStatus(result)
	c.final = result
	c.settle(now)
}

// keepSent keeps and counts content that a plugin has sent.
func (c *Call) keepSent(sent *pluginv1.Content) {
	content := contentOf(sent)
	item := itemOf(content)
	c.output.count(max(item.Size, len(item.Text)))
	c.keep(content)
}

// keep adds content to what the result will show, without the call's secrets;
// a text may hold only part of one.
func (c *Call) keep(content api.Content) {
	if content.Type == "text" {
		_ = c.contentVeil.Pass([]byte(content.Text), c.keepText)
		return
	}
	c.contentVeil.End(c.keepText)
	c.show(c.p.Veil.Content(content))
}

func (c *Call) keepText(p []byte) error {
	c.show(api.Content{Type: "text", Text: string(p)})
	return nil
}

func (c *Call) show(content api.Content) {
	item := itemOf(content)
	c.content.Add(item)
	if c.events.Tells(max(item.Size, len(item.Text))) {
		c.events.Publish(api.Event{Kind: api.EventOutput, Stream: "content", Content: &content})
	}
}

func contentOf(content *pluginv1.Content) api.Content {
	switch e := content.GetContent().(type) {
	case *pluginv1.Content_Json:
		return api.Content{Type: "json", JSON: json.RawMessage(e.Json)}
	case *pluginv1.Content_Blob:
		return api.Content{Type: "blob", Data: e.Blob.GetData(), MIMEType: e.Blob.GetMimeType()}
	case *pluginv1.Content_Link:
		return api.Content{Type: "resource_link", URI: e.Link.GetUri(), Name: e.Link.GetName(), MIMEType: e.Link.GetMimeType()}
	}
	return api.Content{Type: "text", Text: content.GetText()}
}

// itemOf is content as it is bounded: text can be cut anywhere, all else only
// be dropped.
func itemOf(c api.Content) capture.Item {
	if c.Type == "text" {
		return capture.Item{Text: c.Text}
	}
	return capture.Item{Value: c, Size: c.Bytes(), Kind: partKind(c)}
}

// partKind is the word for content that is not text.
func partKind(c api.Content) string {
	switch c.Type {
	case "json":
		return "JSON"
	case "resource_link":
		return "a link"
	}
	if kind, _, err := mime.ParseMediaType(c.MIMEType); err == nil && len(kind) <= maxKindBytes {
		return kind
	}
	return "a blob"
}

// maxKindBytes bounds what a tool can have said as the kind of a blob.
const maxKindBytes = 64

func shownContent(items []capture.Item) []api.Content {
	out := make([]api.Content, 0, len(items))
	for _, item := range items {
		if shown, ok := item.Value.(api.Content); ok {
			out = append(out, shown)
		} else {
			out = append(out, api.Content{Type: "text", Text: item.Text, LeftOutBytes: item.DroppedBytes})
		}
	}
	return out
}

// maxReplies bounds the answers that wait for a tool to take them.
const maxReplies = 64

// replies talks back to a tool without ever holding up the owner.
// Acknowledgements are cumulative, so only the newest waits.
type replies struct {
	callID  string
	ack     chan uint64
	answers chan *pluginv1.AnswerRequest
	stop    context.CancelFunc
	served  sync.WaitGroup
}

func newReplies(callID string) *replies {
	return &replies{callID: callID, ack: make(chan uint64, 1), answers: make(chan *pluginv1.AnswerRequest, maxReplies)}
}

func (r *replies) serve(conn Peer) {
	var ctx context.Context
	ctx, r.stop = context.WithCancel(context.Background())
	r.served.Go(func() {
		for {
			select {
			case seq := <-r.ack:
				_ = conn.Acknowledge(ctx, r.callID, seq)
			case answer := <-r.answers:
				_ = conn.Answer(ctx, answer)
			case <-ctx.Done():
				return
			}
		}
	})
}

// acknowledge is called by the owner only, in rising order.
func (r *replies) acknowledge(seq uint64) {
	select {
	case <-r.ack:
	default:
	}
	r.ack <- seq
}

// deny answers a question that nobody is there to answer; false if too many
// wait already.
func (r *replies) deny(interaction, reason string) bool {
	return r.reply(answerOf(r.callID, interaction, Answer{Denied: reason}))
}

// reply hands an answer over; false if too many wait already.
func (r *replies) reply(answer *pluginv1.AnswerRequest) bool {
	select {
	case r.answers <- answer:
		return true
	default:
		return false
	}
}

func (r *replies) close() {
	if r.stop != nil {
		r.stop()
	}
	r.served.Wait()
}
