package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/toolhost/toolhost/internal/plugin/handshake"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// maxChunkBytes keeps a message well under what hosts accept; longer text is
// sent in pieces.
const maxChunkBytes = 256 << 10

// maxMessageBytes is what hosts accept of one message. A host that gets more
// ends the call as one that broke the protocol.
const maxMessageBytes = handshake.MaxMessageBytes

// Output sends a tool's content, progress and log to the host while the tool runs. Its
// methods are safe for concurrent use. After the tool's function has returned they do
// nothing. Text, JSON, Progress and so on return once the message is sent; Flush
// returns once the host has received it. A host accepts 4 MiB in one message: a larger
// value is not sent, and the error names its size. Only Text is split into several
// messages.
type Output struct {
	mu     sync.Mutex // guards what follows, and the order of messages
	seq    uint64
	send   func(*pluginv1.CallEvent) error
	closed bool
	failed error
	split  string // what a Write has begun of a character

	meta   json.RawMessage     // of the result
	last   []*pluginv1.Content // that it carries
	served bool                // there is a result that can

	acks    *acks
	answers *answers
	clock   *callContext // the call's deadline; nil without one
}

// NewOutput returns an Output that calls send with each message, one at a time and
// in order. It is for tests of tools without a process.
func NewOutput(send func(*pluginv1.CallEvent) error) *Output {
	return &Output{send: send, acks: newAcks(), answers: newAnswers()}
}

// ErrConnection is returned by Output's methods when the host is gone.
var ErrConnection = errors.New("connection to the host lost")

var errEnded = errors.New("the call has ended")

// emit numbers and sends one event.
func (o *Output) emit(event *pluginv1.CallEvent) (uint64, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return 0, errEnded
	}
	if half := o.split; half != "" && follows(event) {
		o.split = ""
		if _, err := o.pass(textEvent(printable(half))); err != nil {
			return 0, err
		}
	}
	return o.pass(event)
}

// follows reports whether an event must come after text that was written before it.
func follows(event *pluginv1.CallEvent) bool {
	switch event.GetEvent().(type) {
	case *pluginv1.CallEvent_Progress, *pluginv1.CallEvent_Heartbeat, *pluginv1.CallEvent_Log:
		return false
	}
	return true
}

// pass is emit with the mutex held.
func (o *Output) pass(event *pluginv1.CallEvent) (uint64, error) {
	if o.failed != nil {
		return 0, o.failed
	}
	event.Seq = o.seq + 1
	if size := proto.Size(event); size > maxMessageBytes {
		return 0, tooLarge(event, size)
	}
	o.seq++
	if err := o.send(event); err != nil {
		if _, unfit := proto.Marshal(event); unfit != nil { // nothing of it was sent
			o.seq--
			return 0, fmt.Errorf("cannot encode a message: %w", unfit)
		}
		o.failed = fmt.Errorf("%w: %w", ErrConnection, err)
		return 0, o.failed
	}
	return o.seq, nil
}

func tooLarge(event *pluginv1.CallEvent, size int) error {
	what, remedy := "a message", "shorten it"
	if event.GetResult() != nil {
		what = "a result, with what it carries,"
	}
	switch content := event.GetContent().GetContent().(type) {
	case *pluginv1.Content_Blob:
		what, remedy = "a blob", "send it in several parts, or write it to a file and send a Link"
		size = len(content.Blob.GetData())
	case *pluginv1.Content_Json:
		what, remedy = "a JSON value", "send several smaller ones, or write it to a file and send a Link"
		size = len(content.Json)
	}
	return fmt.Errorf("%s of %d bytes is more than fits one message, which has at most %d with what is around it: %s", what, size, maxMessageBytes, remedy)
}

// close ends the stream for the tool's own goroutines and sends last, if any,
// behind everything else. An error that says why stands for a result that cannot be sent.
func (o *Output) close(last *pluginv1.CallEvent) {
	if last != nil {
		if _, err := o.emit(last); err != nil && !errors.Is(err, ErrConnection) {
			result := &pluginv1.Result{Error: &pluginv1.ToolError{Kind: pluginv1.ToolError_KIND_ERROR, Message: bounded(err.Error())}}
			_, _ = o.emit(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Result{Result: result}})
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
}

// Text adds text of any length to the content. Invalid UTF-8 is replaced by U+FFFD.
func (o *Output) Text(text string) error {
	text = printable(text)
	for {
		piece := cut(text, maxChunkBytes)
		if _, err := o.emit(textEvent(piece)); err != nil {
			return err
		}
		if text = text[len(piece):]; text == "" {
			return nil
		}
	}
}

func textEvent(text string) *pluginv1.CallEvent {
	return &pluginv1.CallEvent{Event: &pluginv1.CallEvent_Content{Content: &pluginv1.Content{Content: &pluginv1.Content_Text{Text: text}}}}
}

// cut returns the longest prefix of at most limit bytes that does not split a character.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && s[limit]&0xC0 == 0x80 {
		limit--
	}
	return s[:limit]
}

// Textf is Text with fmt.Sprintf's formatting.
func (o *Output) Textf(format string, args ...any) error {
	return o.Text(fmt.Sprintf(format, args...))
}

// Write implements io.Writer; it adds text. If p ends within a character, the incomplete
// character is held back until the next Write, other content, Flush or the result.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	text := o.split + string(p)
	o.split = ""
	o.mu.Unlock()
	whole := text[:wholeCharacters(text)]
	if whole != "" {
		if err := o.Text(whole); err != nil {
			return 0, err
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.split += text[len(whole):]
	return len(p), nil
}

// wholeCharacters is the length of s without a character that has only begun.
func wholeCharacters(s string) int {
	for i := len(s) - 1; i >= max(0, len(s)-utf8.UTFMax); i-- {
		if utf8.RuneStart(s[i]) {
			if !utf8.FullRuneInString(s[i:]) {
				return i
			}
			break
		}
	}
	return len(s)
}

// JSON adds the JSON encoding of value to the content, somewhat less than 4 MiB at most.
func (o *Output) JSON(value any) error {
	raw, err := marshal(value)
	if err != nil {
		return fmt.Errorf("cannot encode content: %w", err)
	}
	return o.content(&pluginv1.Content{Content: &pluginv1.Content_Json{Json: raw}})
}

// marshal refuses JSON that a value came with and that is not UTF-8, as hosts do.
func marshal(value any) ([]byte, error) {
	raw, err := json.Marshal(value)
	if err == nil && !utf8.Valid(raw) {
		return nil, errors.New("it holds JSON that is not UTF-8")
	}
	return raw, err
}

// Blob adds binary content of the given MIME type. It fails for 4 MiB or more:
// send such data in several parts, or write it to a file and send a Link.
func (o *Output) Blob(mimeType string, data []byte) error {
	return o.content(&pluginv1.Content{Content: &pluginv1.Content_Blob{Blob: &pluginv1.Blob{MimeType: printable(mimeType), Data: data}}})
}

// Link adds a link to a resource.
func (o *Output) Link(uri, name, mimeType string) error {
	link := &pluginv1.ResourceLink{Uri: printable(uri), Name: printable(name), MimeType: printable(mimeType)}
	return o.content(&pluginv1.Content{Content: &pluginv1.Content_Link{Link: link}})
}

// Content adds content in its wire format. It is for adapters, which forward the
// content of another program; only they set Begins and Extra.
func (o *Output) Content(c *pluginv1.Content) error {
	text, ok := c.GetContent().(*pluginv1.Content_Text)
	if !ok {
		return o.content(c)
	}
	whole := printable(text.Text)
	first := cut(whole, maxChunkBytes)
	begin := &pluginv1.Content{Content: &pluginv1.Content_Text{Text: first}, Begins: c.GetBegins(), Extra: c.GetExtra()}
	if err := o.content(begin); err != nil || first == whole {
		return err
	}
	return o.Text(whole[len(first):])
}

func (o *Output) content(c *pluginv1.Content) error {
	_, err := o.emit(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Content{Content: c}})
	return err
}

// Progress reports progress: a fraction between 0 and 1, negative if unknown, and a
// message.
func (o *Output) Progress(fraction float64, message string) error {
	p := &pluginv1.Progress{Message: printable(message)}
	if fraction >= 0 {
		p.Fraction = new(min(fraction, 1))
	}
	_, err := o.emit(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Progress{Progress: p}})
	return err
}

// Heartbeat reports that the tool is alive, without content. It resets the
// host's idle limit, but not the timeout.
func (o *Output) Heartbeat() error {
	_, err := o.emit(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Heartbeat{Heartbeat: &pluginv1.Heartbeat{}}})
	return err
}

// Log adds a line to the host's record of the call. The model does not see it.
func (o *Output) Log(message string) error {
	l := &pluginv1.Log{Level: pluginv1.Log_LEVEL_INFO, Message: printable(message)}
	_, err := o.emit(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Log{Log: l}})
	return err
}

// Note is Log for adapters: it adds a log message of another protocol with its severity,
// logger, data (JSON) and _meta (a JSON object, or empty). text is the message for people.
func (o *Output) Note(severity, logger string, data, meta json.RawMessage, text string) error {
	l := &pluginv1.Log{Level: levels[severity], Message: printable(text), Severity: printable(severity), Logger: printable(logger), Data: data, Meta: meta}
	_, err := o.emit(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Log{Log: l}})
	return err
}

// levels maps the severities of RFC 5424; others have no level.
var levels = map[string]pluginv1.Log_Level{
	"debug": pluginv1.Log_LEVEL_DEBUG, "info": pluginv1.Log_LEVEL_INFO, "notice": pluginv1.Log_LEVEL_INFO, "warning": pluginv1.Log_LEVEL_WARN,
	"error": pluginv1.Log_LEVEL_ERROR, "critical": pluginv1.Log_LEVEL_ERROR, "alert": pluginv1.Log_LEVEL_ERROR, "emergency": pluginv1.Log_LEVEL_ERROR,
}

// Meta sets the other fields of an adapter's result, besides content and structured
// value, as a JSON object. Call it before the tool's function returns.
func (o *Output) Meta(meta json.RawMessage) { o.meta = meta }

// WithResult is like Content, for the last content of a call. Up to 64 KiB is sent with
// the result, which saves a message. More is sent at once.
func (o *Output) WithResult(last []*pluginv1.Content) error {
	size := 0
	for _, c := range last {
		size += proto.Size(c)
	}
	if o.served && size <= maxCarriedBytes {
		o.last = last
		return nil
	}
	for _, c := range last {
		if err := o.Content(c); err != nil {
			return err
		}
	}
	return nil
}

const maxCarriedBytes = 64 << 10

func (o *Output) lastOf() []*pluginv1.Content {
	if o == nil {
		return nil
	}
	return o.last
}

func (o *Output) metaOf() json.RawMessage {
	if o == nil {
		return nil
	}
	return o.meta
}

// Flush waits until the host has received everything that was sent before, so that
// a kill no longer loses it. It returns ctx's cause if ctx ends first.
func (o *Output) Flush(ctx context.Context) error {
	seq, err := o.emit(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Flush{Flush: &pluginv1.Flush{}}})
	if err != nil {
		return err
	}
	return o.acks.wait(ctx, seq)
}
