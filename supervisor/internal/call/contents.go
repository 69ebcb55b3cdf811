package call

import (
	"encoding/json"

	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor/internal/capture"
	"github.com/toolhost/toolhost/supervisor/internal/mask"
	"github.com/toolhost/toolhost/supervisor/internal/publish"
)

// contents keep what the result will show as content, without the call's secrets;
// a text may hold only part of one. Its owner alone uses it.
type contents struct {
	mask   *mask.Mask
	events *publish.Publisher
	items  *capture.Items
	stream *mask.Stream
	block  *api.Content // a block of text, not shown yet
}

func newContents(c *Call) contents {
	return contents{mask: c.p.Mask, events: c.events, items: capture.NewItems(c.p.Bounds.OutputBytes), stream: c.p.Mask.Stream()}
}

func (c *contents) keep(content api.Content) {
	if content.Type != "text" || content.Block {
		c.end()
	}
	if content.Type != "text" {
		c.show(c.mask.Content(content))
		return
	}
	if content.Block {
		c.block = &api.Content{Block: true, Extra: c.mask.JSON(content.Extra)}
	}
	_ = c.stream.PassText(content.Text, c.keepText)
}

// end keeps what was held back.
func (c *contents) end() {
	c.stream.End(func(p []byte) error { return c.keepText(string(p)) })
	if c.block != nil {
		_ = c.keepText("")
	}
}

func (c *contents) keepText(text string) error {
	content := api.Content{Type: "text", Text: text}
	if c.block != nil {
		content.Block, content.Extra, c.block = true, c.block.Extra, nil
	}
	c.show(content)
	return nil
}

func (c *contents) show(content api.Content) {
	c.items.Add(content)
	c.events.Output("content", content)
}

// fill shows what was kept in a result.
func (c *contents) fill(r *api.Result) {
	r.Content = c.items.Kept()
	r.Output.Content.SeenBytes, r.Output.Content.KeptBytes, r.Output.Content.DroppedBytes = c.items.Counts()
}

func contentOf(content *pluginv1.Content) api.Content {
	c := kindOf(content)
	c.Extra = content.GetExtra()
	return c
}

func kindOf(content *pluginv1.Content) api.Content {
	switch e := content.GetContent().(type) {
	case *pluginv1.Content_Resource:
		r := e.Resource
		return api.Content{Type: "resource", URI: r.GetUri(), MIMEType: r.GetMimeType(), Text: r.GetText(), Data: r.GetBlob()}
	case *pluginv1.Content_Json:
		return api.Content{Type: "json", JSON: json.RawMessage(e.Json)}
	case *pluginv1.Content_Blob:
		return api.Content{Type: "blob", Data: e.Blob.GetData(), MIMEType: e.Blob.GetMimeType()}
	case *pluginv1.Content_Link:
		return api.Content{Type: "resource_link", URI: e.Link.GetUri(), Name: e.Link.GetName(), MIMEType: e.Link.GetMimeType()}
	}
	return api.Content{Type: "text", Text: content.GetText(), Block: content.GetBegins()}
}
