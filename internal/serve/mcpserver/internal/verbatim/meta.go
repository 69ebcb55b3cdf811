package verbatim

import (
	"encoding/json"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// ReceiptKey is where toolhost's receipt of a call stands in _meta.
const ReceiptKey = "dev.toolhost/execution"

// ServerMeta is a wrapped server's _meta of a result.
func ServerMeta(raw json.RawMessage) mcpsdk.Meta {
	meta := Meta(raw)
	for _, key := range []string{mcpsdk.MetaKeyServerInfo, mcpsdk.MetaKeySubscriptionID, ReceiptKey} {
		delete(meta, key) // toolhost writes these itself
	}
	return meta
}

// rawMeta is _meta with its values as they were written: numbers keep their digits,
// which the SDK does not keep.
type rawMeta map[string]json.RawMessage

// withMeta is an object that has one.
type withMeta struct {
	Meta rawMeta `json:"_meta"`
}

// Meta is the _meta of an object.
func Meta(raw []byte) mcpsdk.Meta {
	var one withMeta
	_ = json.Unmarshal(raw, &one)
	return one.Meta.sdk()
}

// MetaOf is a _meta itself; nil without one.
func MetaOf(raw []byte) mcpsdk.Meta {
	var meta rawMeta
	if json.Unmarshal(raw, &meta) != nil || len(meta) == 0 {
		return nil
	}
	return meta.sdk()
}

func (m rawMeta) sdk() mcpsdk.Meta {
	meta := mcpsdk.Meta{}
	for key, value := range m {
		meta[key] = value
	}
	return meta
}
