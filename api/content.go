package api

import "encoding/json"

// Content is one piece of what a tool has to show: Type is text, json, blob,
// resource_link or resource (one that stands in the content itself, with Text or
// Data), and the fields of that type are set.
type Content struct {
	Type string          `json:"type"`
	Text string          `json:"text,omitempty"`
	JSON json.RawMessage `json:"json,omitempty"`
	// Data is base64 in JSON.
	Data     []byte `json:"data,omitempty"`
	MIMEType string `json:"mimeType,omitempty"`
	URI      string `json:"uri,omitempty"`
	Name     string `json:"name,omitempty"`
	// Extra is what a wrapped server's block has beside these, an object:
	// annotations, _meta, title, icons and so on.
	Extra json.RawMessage `json:"extra,omitempty"`
	// Block is set for text that a wrapped server gave as a block of its own; all
	// other text goes on where the text before it ended.
	Block bool `json:"block,omitempty"`
	// LeftOutBytes is set for the text that stands where so many bytes are
	// missing (Output.Content.DroppedBytes), and in an event for what is too long
	// for one: so much of it is in the result alone.
	LeftOutBytes int64 `json:"leftOutBytes,omitempty"`
}

// Bytes is what the content holds.
func (c Content) Bytes() int {
	return len(c.Text) + len(c.JSON) + len(c.Data) + len(c.URI) + len(c.Name) + len(c.MIMEType) + len(c.Extra)
}

// ServerResult is what only calls of wrapped servers have in their results.
type ServerResult struct {
	// Meta is what the server's result has beside Content and Structured, an object:
	// its _meta, say.
	Meta json.RawMessage `json:"meta,omitempty"`
	// Rounds are the processes of the call before the last one: each ended with what
	// its server asked for, and all of the result but this, Usage and Timing's sums is
	// the last one's.
	Rounds []Round `json:"rounds,omitempty"`
}

// Round is one process of a call whose server has asked for something instead of a
// result, and that was made anew with it.
type Round struct {
	Instance string `json:"instance"`
	Timing   Timing `json:"timing"`
	Kill     Kill   `json:"kill"`
	Usage    Usage  `json:"usage"`
}
