package plugintest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/plugin"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// Result is what a call has sent and returned.
type Result struct {
	// Content is what the model would see, in order, with what the result itself
	// added last.
	Content []Content
	// Progress and Logs are for people.
	Progress []Progress
	Logs     []string
	// Questions were asked by Output.Ask.
	Questions []plugin.Question
	// Heartbeats and Flushes count those calls.
	Heartbeats, Flushes int
	// Structured is the typed result as JSON; empty if the tool returned none.
	Structured json.RawMessage
	// Error is the tool's own; nil if it succeeded.
	Error *Error
	// Exit is a plugin.CommandExit that the tool returned; nil if none.
	Exit *plugin.CommandExit

	tool string // its name, once the call is over
}

// Content is one piece of content: Type is text, json, blob or resource_link,
// and the fields of that type are set.
type Content struct {
	Type     string
	Text     string
	JSON     json.RawMessage
	Data     []byte
	MIMEType string
	URI      string
	Name     string
}

// Progress is how far a tool says that it is. Fraction is -1 if it does not
// know.
type Progress struct {
	Fraction float64
	Message  string
}

// Kinds of Error.
const (
	KindError            = "error"
	KindPanic            = "panic"
	KindCancelled        = "cancelled"
	KindInvalidArguments = "invalid_arguments"
	KindCommandNotFound  = "command_not_found"
	KindNotExecutable    = "command_not_executable"
)

// Error is a tool's failure as a host sees it.
type Error struct {
	// Kind is one of the Kind constants.
	Kind, Message string
	// Stack is a panic's.
	Stack string
}

func (e *Error) Error() string { return e.Kind + ": " + e.Message }

// OK is true for a success: no error, and no command that failed.
func (r *Result) OK() bool { return r.Error == nil && r.Exit == nil }

// Text joins the text content.
func (r *Result) Text() string {
	var b strings.Builder
	for _, c := range r.Content {
		b.WriteString(c.Text)
	}
	return b.String()
}

// Value decodes a success's structured result and fails the test of a result
// without one.
func Value[T any](t testing.TB, r *Result) T {
	t.Helper()
	var value T
	switch {
	case r.Error != nil:
		t.Fatalf("plugintest: %s failed: %v\n%s", r.tool, r.Error, r.Error.Stack)
	case len(r.Structured) == 0:
		t.Fatalf("plugintest: %s returned no structured result", r.tool)
	}
	if err := json.Unmarshal(r.Structured, &value); err != nil {
		t.Fatalf("plugintest: cannot decode %s as %T: %v", r.Structured, value, err)
	}
	return value
}

// add takes one event. It never changes what an earlier copy of r shares.
func (r *Result) add(event *pluginv1.CallEvent) {
	switch e := event.GetEvent().(type) {
	case *pluginv1.CallEvent_Content:
		r.Content = append(r.Content, contentOf(e.Content))
	case *pluginv1.CallEvent_Progress:
		p := Progress{Fraction: -1, Message: e.Progress.GetMessage()}
		if e.Progress.Fraction != nil {
			p.Fraction = e.Progress.GetFraction()
		}
		r.Progress = append(r.Progress, p)
	case *pluginv1.CallEvent_Log:
		r.Logs = append(r.Logs, e.Log.GetMessage())
	case *pluginv1.CallEvent_Heartbeat:
		r.Heartbeats++
	case *pluginv1.CallEvent_Flush:
		r.Flushes++
	case *pluginv1.CallEvent_Ask:
		r.Questions = append(r.Questions, plugin.Question{
			Prompt: e.Ask.GetPrompt(), Schema: e.Ask.GetSchema(), Secret: e.Ask.GetSecret(),
			Timeout: time.Duration(e.Ask.GetTimeoutMs()) * time.Millisecond,
		})
	case *pluginv1.CallEvent_Result:
		r.finish(e.Result)
	}
}

func (r *Result) finish(result *pluginv1.Result) {
	for _, c := range result.GetContent() {
		r.Content = append(r.Content, contentOf(c))
	}
	r.Structured = result.GetStructured()
	if e := result.GetError(); e != nil {
		r.Error = &Error{Kind: cmp.Or(kinds[e.GetKind()], KindError), Message: e.GetMessage(), Stack: e.GetStack()}
	}
	if e := result.GetExit(); e != nil {
		r.Exit = &plugin.CommandExit{Code: int(e.GetCode()), Signal: e.GetSignal()}
	}
}

func contentOf(c *pluginv1.Content) Content {
	switch e := c.GetContent().(type) {
	case *pluginv1.Content_Text:
		return Content{Type: "text", Text: e.Text}
	case *pluginv1.Content_Json:
		return Content{Type: "json", JSON: e.Json}
	case *pluginv1.Content_Blob:
		return Content{Type: "blob", Data: e.Blob.GetData(), MIMEType: e.Blob.GetMimeType()}
	case *pluginv1.Content_Resource:
		return Content{Type: "resource", URI: e.Resource.GetUri(), MIMEType: e.Resource.GetMimeType(), Text: e.Resource.GetText(), Data: e.Resource.GetBlob()}
	case *pluginv1.Content_Link:
		return Content{Type: "resource_link", URI: e.Link.GetUri(), Name: e.Link.GetName(), MIMEType: e.Link.GetMimeType()}
	}
	return Content{Type: fmt.Sprintf("%T", c.GetContent())}
}

var kinds = map[pluginv1.ToolError_Kind]string{
	pluginv1.ToolError_KIND_PANIC:                  KindPanic,
	pluginv1.ToolError_KIND_CANCELLED:              KindCancelled,
	pluginv1.ToolError_KIND_INVALID_ARGUMENTS:      KindInvalidArguments,
	pluginv1.ToolError_KIND_COMMAND_NOT_FOUND:      KindCommandNotFound,
	pluginv1.ToolError_KIND_COMMAND_NOT_EXECUTABLE: KindNotExecutable,
}
