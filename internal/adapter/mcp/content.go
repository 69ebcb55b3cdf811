package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/plugin"
)

const (
	// maxPartBytes bounds what of a result cannot be sent in pieces: hosts take
	// messages of 4 MiB.
	maxPartBytes = 3 << 20
	// maxErrorBytes bounds an error's text; what the model reads of it is in the
	// content, whole.
	maxErrorBytes = 4 << 10
)

// callResult is a server's result of a call, its parts as they were written:
// numbers keep their digits, and one part that is wrong costs no other.
type callResult struct {
	Content           []json.RawMessage
	StructuredContent json.RawMessage
	IsError           bool
	ResultType        string
}

func decodeResult(raw json.RawMessage) (callResult, error) {
	var r callResult
	if err := json.Unmarshal(raw, &r); err != nil {
		return r, err
	}
	if r.Content == nil && r.StructuredContent == nil && r.ResultType != "input_required" {
		return r, errors.New("the result has no content")
	}
	return r, nil
}

// deliver sends the content and returns the structured result, or the error
// that the tool made of its text.
func (r callResult) deliver(out *plugin.Output) (json.RawMessage, error) {
	d := &delivery{out: out}
	for _, raw := range r.Content {
		if err := d.part(raw); err != nil {
			return nil, err
		}
	}
	if len(r.StructuredContent) > maxPartBytes {
		d.leftOut("the structured result", len(r.StructuredContent))
		r.StructuredContent = nil
	}
	if err := d.flush(); err != nil {
		return nil, err
	}
	switch {
	case r.IsError && d.said == "":
		return nil, errors.New("the tool failed and says nothing of why")
	case r.IsError:
		return nil, errors.New(d.said)
	case string(r.StructuredContent) == "null":
		return nil, nil
	}
	return r.StructuredContent, nil
}

// delivery sends the parts of a result, neighbouring texts together: there may
// be very many of them.
type delivery struct {
	out  *plugin.Output
	text strings.Builder // not sent yet
	open bool            // a line of text is not ended yet
	said string          // the beginning of all texts, for an error
}

const maxTextBytes = 256 << 10

func (d *delivery) flush() error {
	if d.text.Len() == 0 {
		return nil
	}
	defer d.text.Reset()
	return d.out.Text(d.text.String())
}

// say adds text on a line of its own.
func (d *delivery) say(text string) error {
	if d.open {
		d.text.WriteByte('\n')
	}
	d.text.WriteString(text)
	d.open = !strings.HasSuffix(text, "\n")
	if d.text.Len() < maxTextBytes {
		return nil
	}
	return d.flush()
}

func (d *delivery) toolText(text string) error {
	if len(d.said) < maxErrorBytes {
		d.said = cut(strings.TrimPrefix(d.said+"\n"+text, "\n"), maxErrorBytes)
	}
	return d.say(text)
}

// send sends what is not text, after the text before it.
func (d *delivery) send(send func() error) error {
	if err := d.flush(); err != nil {
		return err
	}
	d.open = false
	return send()
}

func (d *delivery) leftOut(what string, size int) error {
	return d.say(fmt.Sprintf("[%s is left out: it has %d bytes, at most %d can be passed on]\n", what, size, maxPartBytes))
}

// part sends one part of the content, or says why not.
func (d *delivery) part(raw json.RawMessage) error {
	var one mcpsdk.CallToolResult
	whole := append(append([]byte(`{"content":[`), raw...), "]}"...)
	if err := json.Unmarshal(whole, &one); err != nil || len(one.Content) != 1 {
		return d.say(fmt.Sprintf("[a part of the result is left out: it is of no kind that MCP has: %s]\n", cut(string(raw), 200)))
	}
	switch part := one.Content[0].(type) {
	case *mcpsdk.TextContent:
		return d.toolText(part.Text)
	case *mcpsdk.ImageContent:
		return d.blob(part.MIMEType, part.Data)
	case *mcpsdk.AudioContent:
		return d.blob(part.MIMEType, part.Data)
	case *mcpsdk.ResourceLink:
		if size := len(part.URI) + len(part.Name) + len(part.MIMEType); size > maxPartBytes {
			return d.leftOut("a link", size)
		}
		return d.send(func() error { return d.out.Link(part.URI, part.Name, part.MIMEType) })
	case *mcpsdk.EmbeddedResource:
		return d.resource(part.Resource)
	}
	return d.say("[a part of the result is left out: it is of a kind that has no place in a result]\n")
}

func (d *delivery) blob(mimeType string, data []byte) error {
	if size := len(mimeType) + len(data); size > maxPartBytes {
		return d.leftOut(cut(mimeType, 100), size)
	}
	return d.send(func() error { return d.out.Blob(mimeType, data) })
}

func (d *delivery) resource(r *mcpsdk.ResourceContents) error {
	switch {
	case r == nil:
		return d.say("[a resource is left out: it has no contents]\n")
	case r.Blob != nil: // which has no name of its own
		return errors.Join(d.say(fmt.Sprintf("[%s]\n", cut(r.URI, 1000))), d.blob(r.MIMEType, r.Blob))
	}
	return d.toolText(fmt.Sprintf("[%s]\n%s", cut(r.URI, 1000), r.Text))
}
