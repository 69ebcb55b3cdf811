package mcp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/toolhost/toolhost/internal/text"
	"github.com/toolhost/toolhost/plugin"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
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
	Meta              json.RawMessage // all else
	lost              int             // bytes of it that are too many
	mended            int             // bytes of it that are not UTF-8
}

// decodeResult takes a result apart; it has fields afterwards what is not the content's.
func decodeResult(fields map[string]json.RawMessage) (r callResult, err error) {
	for name, into := range map[string]any{"content": &r.Content, "isError": &r.IsError} {
		if raw := fields[name]; raw != nil {
			err = cmp.Or(err, misfit(name, json.Unmarshal(raw, into)))
		}
	}
	if r.StructuredContent = fields["structuredContent"]; err != nil {
		return r, err
	}
	if r.Content == nil && r.StructuredContent == nil {
		return r, errors.New("the result has no content")
	}
	for _, name := range []string{"content", "isError", "resultType"} {
		delete(fields, name)
	}
	delete(fields, "structuredContent")
	raw, _ := json.Marshal(fields) // of what was decoded from JSON
	if len(raw) > maxMetaBytes {
		r.lost = len(raw)
		clear(fields)
	}
	if r.IsError && 0 < len(r.StructuredContent) && len(r.StructuredContent) <= maxPartBytes { // an error has nothing else that could carry it
		fields["structuredContent"] = r.StructuredContent
	}
	if len(fields) > 0 {
		r.Meta, _ = json.Marshal(fields)
	}
	return r, nil
}

// misfit is an error of decoding a field without Go's types.
func misfit(field string, err error) error {
	if wrong, is := errors.AsType[*json.UnmarshalTypeError](err); is {
		return fmt.Errorf("%s cannot be a %s", field, wrong.Value)
	}
	return err
}

// deliver sends the content and returns the structured result, or the error
// that the tool made of its text. null is a value to clients of 2026-07-28 only.
func (r callResult) deliver(out *plugin.Output, nullIsValue bool) (json.RawMessage, error) {
	d := &delivery{out: out}
	for _, raw := range r.Content {
		if err := d.part(raw); err != nil {
			return nil, err
		}
	}
	if len(r.StructuredContent) > maxPartBytes {
		if err := d.leftOut("the structured result", len(r.StructuredContent), maxPartBytes); err != nil {
			return nil, err
		}
		r.StructuredContent = nil
	}
	if r.lost > 0 {
		if err := d.leftOut("what stands beside the result (_meta)", r.lost, maxMetaBytes); err != nil {
			return nil, err
		}
	}
	if err := d.end(r.mended); err != nil {
		return nil, err
	}
	switch {
	case r.IsError && d.said == "" && len(r.StructuredContent) > 0:
		return nil, errors.New(text.Begin(string(r.StructuredContent), maxErrorBytes))
	case r.IsError && d.said == "":
		return nil, errors.New("the tool failed and says nothing of why")
	case r.IsError:
		return nil, errors.New(d.said)
	case string(r.StructuredContent) == "null" && !nullIsValue:
		return nil, nil
	}
	return r.StructuredContent, nil
}

// delivery sends the parts of a result: few with the result itself, more ahead of it.
type delivery struct {
	out    *plugin.Output
	held   []*pluginv1.Content // for the result
	bytes  int                 // of all parts
	said   string              // the beginning of all texts, for an error
	blocks int                 // of text
	more   strings.Builder     // texts that become one block, not sent yet
}

const (
	// maxBlocks is how many texts stay blocks of their own: there may be very many,
	// and the rest become lines.
	maxBlocks    = 512
	maxTextBytes = 256 << 10
	// maxHeldBytes is what goes with a result at most.
	maxHeldBytes = 64 << 10
)

// part sends one part of the content, or says why not.
func (d *delivery) part(raw json.RawMessage) error {
	var b block
	err := b.decode(raw)
	if errors.Is(err, errNotBase64) {
		return d.unfit(errNotBase64.Error(), raw)
	}
	content := b.content()
	if err != nil || content == nil {
		return d.unfit("it is of no kind that MCP has", raw)
	}
	content.Extra = b.extra
	if size := len(b.Data) + len(b.URI) + len(b.Name) + len(b.MIMEType) + len(content.Extra) + b.resourceBytes(); size > maxPartBytes {
		return d.leftOut(b.what(), size, maxPartBytes)
	}
	if b.Type == "text" && len(d.said) < maxErrorBytes {
		d.said = text.Begin(join(d.said, *b.Text), maxErrorBytes)
	}
	if b.Type == "text" && len(content.Extra) == 0 {
		return d.text(*b.Text, content)
	}
	return d.send(content)
}

// text sends a text, behind maxBlocks as a line.
func (d *delivery) text(text string, content *pluginv1.Content) error {
	if d.blocks++; d.blocks <= maxBlocks {
		return d.send(content)
	}
	d.more.WriteString(text)
	if !strings.HasSuffix(text, "\n") {
		d.more.WriteByte('\n')
	}
	if d.more.Len() < maxTextBytes {
		return nil
	}
	return d.flush()
}

// flush sends texts that became one block.
func (d *delivery) flush() error {
	if d.more.Len() == 0 {
		return nil
	}
	defer d.more.Reset()
	return d.put(&pluginv1.Content{Content: &pluginv1.Content_Text{Text: d.more.String()}, Begins: true})
}

// send sends a block, after the text before it.
func (d *delivery) send(content *pluginv1.Content) error {
	return errors.Join(d.flush(), d.put(content))
}

// put holds a block for the result, as long as all so far are few.
func (d *delivery) put(content *pluginv1.Content) error {
	if d.bytes += proto.Size(content); d.bytes <= maxHeldBytes {
		d.held = append(d.held, content)
		return nil
	}
	for _, before := range d.held {
		if err := d.out.Content(before); err != nil {
			return err
		}
	}
	d.held = nil
	return d.out.Content(content)
}

// end comes after the last part, and says how many bytes of them all were not text.
func (d *delivery) end(mended int) error {
	if err := errors.Join(d.flush(), d.notText(mended)); err != nil {
		return err
	}
	return d.out.WithResult(d.held)
}

func (d *delivery) unfit(why string, raw json.RawMessage) error {
	return d.say(fmt.Sprintf("[a part of the result is left out: %s: %s]\n", why, text.Begin(string(raw), 200)))
}

func (d *delivery) leftOut(what string, size, most int) error {
	return d.say(fmt.Sprintf("[%s is left out: it has %d bytes, at most %d can be passed on]\n", what, size, most))
}

// notText says of bytes that had to be replaced that there were some.
func (d *delivery) notText(bytes int) error {
	if bytes == 0 {
		return nil
	}
	return d.say(fmt.Sprintf("[bytes of this result that are not UTF-8 are left out, %d in all: \uFFFD stands where they were]\n", bytes))
}

// say adds a text of the adapter's own, as a block.
func (d *delivery) say(text string) error {
	return d.send(&pluginv1.Content{Content: &pluginv1.Content_Text{Text: text}, Begins: true})
}

func join(text, more string) string {
	if text == "" {
		return more
	}
	return text + "\n" + more
}
