package verbatim

import (
	"encoding/json"
	"testing"

	"github.com/toolhost/toolhost/api"
)

// What a block has beside what toolhost knows comes out as it went in.
func TestBlocksArePassedOn(t *testing.T) {
	for _, test := range []struct {
		content api.Content
		want    string
	}{
		{
			api.Content{Type: "text", Text: "a", Block: true, Extra: json.RawMessage(`{"annotations":{"audience":["user"],"priority":0.5},"_meta":{"k":1}}`)},
			`{"type":"text","text":"a","_meta":{"k":1},"annotations":{"audience":["user"],"priority":0.5}}`,
		},
		{api.Content{Type: "blob", Data: []byte("hi"), MIMEType: "audio/wav", Extra: json.RawMessage(`{"type":"audio"}`)}, `{"type":"audio","mimeType":"audio/wav","data":"aGk="}`},
		{
			api.Content{Type: "resource", URI: "u:x", Text: "t", Extra: json.RawMessage(`{"resource":{"_meta":{"k":2}}}`)},
			`{"type":"resource","resource":{"uri":"u:x","text":"t","_meta":{"k":2}}}`,
		},
		{
			api.Content{Type: "resource_link", URI: "u:y", Name: "y", Extra: json.RawMessage(`{"title":"Y","size":3}`)},
			`{"type":"resource_link","uri":"u:y","name":"y","title":"Y","size":3}`,
		},
		{
			api.Content{Type: "text", Text: "a", Block: true, Extra: json.RawMessage(`{"mimeType":"application/json","data":{"x":1},"name":5,"uri":{},"resource":"r"}`)},
			`{"type":"text","text":"a","mimeType":"application/json","data":{"x":1},"name":5,"uri":{},"resource":"r"}`,
		},
		{
			api.Content{Type: "blob", Data: []byte("hi"), MIMEType: "image/png", Extra: json.RawMessage(`{"type":"image","name":"n","uri":"u:z","text":"t"}`)},
			`{"type":"image","mimeType":"image/png","data":"aGk=","name":"n","uri":"u:z","text":"t"}`,
		},
		{
			api.Content{Type: "resource", URI: "u:x", Text: "t", Extra: json.RawMessage(`{"name":"outer","mimeType":"m","resource":{"name":"n","data":1}}`)},
			`{"type":"resource","name":"outer","mimeType":"m","resource":{"uri":"u:x","text":"t","name":"n","data":1}}`,
		},
	} {
		var got, want any
		raw, err := json.Marshal(Block(test.content))
		if err != nil || json.Unmarshal(raw, &got) != nil || json.Unmarshal([]byte(test.want), &want) != nil {
			t.Fatal(err)
		}
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(want)
		if string(a) != string(b) {
			t.Errorf("%s, want %s", a, b)
		}
	}
}

// A server's _meta has what the server said, but for what is toolhost's to say.
func TestAReceiptIsNotTheServers(t *testing.T) {
	meta := ServerMeta(json.RawMessage(`{"_meta":{"own":1,"dev.toolhost/execution":{"status":"ok"}}}`))
	if _, forged := meta[ReceiptKey]; forged || len(meta) != 1 {
		t.Errorf("%v", meta)
	}
}
