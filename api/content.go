package api

import "encoding/json"

// Content is one piece of a tool's output. Type is text, json, blob, resource_link
// or resource (embedded, with Text or Data); only the fields of that type are set.
type Content struct {
	Type string          `json:"type"`
	Text string          `json:"text,omitempty"`
	JSON json.RawMessage `json:"json,omitempty"`
	// Data is encoded as base64 in JSON.
	Data     []byte `json:"data,omitempty"`
	MIMEType string `json:"mimeType,omitempty"`
	URI      string `json:"uri,omitempty"`
	Name     string `json:"name,omitempty"`
	// Extra is an object with the other fields of a wrapped server's block, such as
	// annotations, _meta, title and icons.
	Extra json.RawMessage `json:"extra,omitempty"`
	// Block is set for text that a wrapped server sent as a separate block; all
	// other text continues the text before it.
	Block bool `json:"block,omitempty"`
	// LeftOutBytes is the number of bytes missing at this place. In a result, Text
	// stands for dropped bytes (see Output.Content.DroppedBytes); in an event, the
	// bytes were too many for one event and are only in the result.
	LeftOutBytes int64 `json:"leftOutBytes,omitempty"`
}

// Bytes returns the size of the content in bytes, all fields but Type included.
func (c Content) Bytes() int {
	return len(c.Text) + len(c.JSON) + len(c.Data) + len(c.URI) + len(c.Name) + len(c.MIMEType) + len(c.Extra)
}

// ServerResult holds the fields of a Result that only calls of wrapped servers set.
type ServerResult struct {
	// Meta is an object with the other fields of the server's result, such as _meta.
	Meta json.RawMessage `json:"meta,omitempty"`
	// Rounds are the call's processes before the last one, each of which ended with a
	// request of its server. Usage and the sums in Timing include them; all other
	// fields of the result describe the last process.
	Rounds []Round `json:"rounds,omitempty"`
}

// Round is one process of a call whose server answered with a request instead of a
// result. The call was then repeated with what the server had asked for.
type Round struct {
	Instance string `json:"instance"`
	Timing   Timing `json:"timing"`
	Kill     Kill   `json:"kill"`
	Usage    Usage  `json:"usage"`
}
