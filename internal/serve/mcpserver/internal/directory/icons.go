package directory

import (
	"encoding/json"
	"slices"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Icons are what clients can read of icons: for one of a form that the protocol does not
// have, or no longer, a strict client would lose the whole list.
func Icons(raw json.RawMessage) (icons []mcpsdk.Icon) {
	_ = json.Unmarshal(raw, &icons) // which goes on behind what is of another type
	return slices.DeleteFunc(icons, func(icon mcpsdk.Icon) bool { return icon.Source == "" })
}

// readable are icons as they were written, or else what clients can read of them: nil is
// nothing.
func readable(raw json.RawMessage) json.RawMessage {
	icons := Icons(raw)
	var written []mcpsdk.Icon
	if json.Unmarshal(raw, &written) == nil && len(written) == len(icons) {
		return raw
	}
	if len(icons) == 0 {
		return nil
	}
	raw, _ = json.Marshal(icons) // of JSON
	return raw
}
