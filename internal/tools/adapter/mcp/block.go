package mcp

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"

	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"

	"github.com/toolhost/toolhost/internal/text"
)

// block is a part of a result as MCP has it.
type block struct {
	Type     string
	Text     *string
	Data     inBase64
	MIMEType string
	URI      string
	Name     string
	Resource *contents
	extra    []byte // all else, an object; nil if nothing
}

// contents are those of a resource.
type contents struct {
	URI      string
	MIMEType string
	Text     *string
	Blob     inBase64
}

// inBase64 are bytes in any form of Base64, as servers have them: with the alphabet for
// URLs, without padding, or in lines.
type inBase64 []byte

var errNotBase64 = errors.New("its data is not Base64")

// UnmarshalJSON implements json.Unmarshaler.
func (b *inBase64) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, (*[]byte)(b)) == nil { // most are as MCP has them
		return nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	text = strings.NewReplacer("-", "+", "_", "/", " ", "", "\t", "", "\r", "", "\n", "").Replace(text)
	decoded, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		return errNotBase64
	}
	*b = decoded
	return nil
}

// places are the fields that content has places for, by the kind of the block: what a kind
// has no place for is passed on like a field that nobody knows.
func (b *block) places() map[string]any {
	switch b.Type {
	case "text":
		return map[string]any{"text": &b.Text}
	case "image", "audio":
		return map[string]any{"data": &b.Data, "mimeType": &b.MIMEType}
	case "resource_link":
		return map[string]any{"uri": &b.URI, "name": &b.Name, "mimeType": &b.MIMEType}
	}
	return nil
}

func (c *contents) places() map[string]any {
	return map[string]any{"uri": &c.URI, "mimeType": &c.MIMEType, "text": &c.Text, "blob": &c.Blob}
}

// decode reads a block. Its type is among the further fields where a blob alone would not
// tell it.
func (b *block) decode(raw json.RawMessage) error {
	var fields, inner map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return err
	}
	if err := json.Unmarshal(fields["type"], &b.Type); err != nil {
		return err
	}
	if b.Type != "image" && b.Type != "audio" {
		delete(fields, "type")
	}
	if err := take(fields, b.places()); err != nil {
		return err
	}
	if b.Type == "resource" {
		if err := json.Unmarshal(fields["resource"], &inner); err != nil {
			return err
		}
		b.Resource = &contents{}
		if err := take(inner, b.Resource.places()); err != nil {
			return err
		}
		delete(fields, "resource")
		if len(inner) > 0 {
			fields["resource"], _ = json.Marshal(inner) // of what was decoded from JSON
		}
	}
	if len(fields) > 0 {
		b.extra, _ = json.Marshal(fields)
	}
	return nil
}

// take moves fields to their places.
func take(fields map[string]json.RawMessage, places map[string]any) error {
	for name, place := range places {
		raw, there := fields[name]
		if !there {
			continue
		}
		if err := json.Unmarshal(raw, place); err != nil {
			return err
		}
		delete(fields, name)
	}
	return nil
}

// content is nil for a block of no kind that a result can have.
func (b block) content() *pluginv1.Content {
	switch {
	case b.Type == "text" && b.Text != nil:
		return &pluginv1.Content{Content: &pluginv1.Content_Text{Text: *b.Text}, Begins: true}
	case (b.Type == "image" || b.Type == "audio") && b.Data != nil:
		return &pluginv1.Content{Content: &pluginv1.Content_Blob{Blob: &pluginv1.Blob{MimeType: b.MIMEType, Data: b.Data}}}
	case b.Type == "resource_link" && b.URI != "":
		return &pluginv1.Content{Content: &pluginv1.Content_Link{Link: &pluginv1.ResourceLink{Uri: b.URI, Name: b.Name, MimeType: b.MIMEType}}}
	case b.Type == "resource" && b.Resource != nil && (b.Resource.Text != nil || b.Resource.Blob != nil):
		r := &pluginv1.Resource{Uri: b.Resource.URI, MimeType: b.Resource.MIMEType}
		if b.Resource.Text == nil || len(b.Resource.Blob) > 0 {
			r.Contents = &pluginv1.Resource_Blob{Blob: b.Resource.Blob}
		} else {
			r.Contents = &pluginv1.Resource_Text{Text: *b.Resource.Text}
		}
		return &pluginv1.Content{Content: &pluginv1.Content_Resource{Resource: r}}
	}
	return nil
}

func (b block) resourceBytes() int {
	if b.Resource == nil {
		return 0
	}
	size := len(b.Resource.URI) + len(b.Resource.MIMEType) + len(b.Resource.Blob)
	if b.Resource.Text != nil {
		size += len(*b.Resource.Text)
	}
	return size
}

// what a block is called where it is left out.
func (b block) what() string {
	switch {
	case b.Type == "resource_link":
		return "a link"
	case b.Type == "resource":
		return "the resource " + text.Begin(b.Resource.URI, 200)
	case b.MIMEType != "":
		return text.Begin(b.MIMEType, 100)
	}
	return "a part of the result"
}
