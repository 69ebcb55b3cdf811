package mcp

import "testing"

// What a kind of block has no place for is among its further fields, whatever it is called.
func TestFurtherFields(t *testing.T) {
	for raw, want := range map[string]string{
		`{"type":"text","text":"a"}`: "",
		`{"type":"text","text":"a","mimeType":"application/json","data":{"x":1},"name":5,"uri":{},"resource":"r","blob":1.10}`: `{"blob":1.10,"data":{"x":1},"mimeType":"application/json","name":5,"resource":"r","uri":{}}`,
		`{"type":"image","data":"aGk=","mimeType":"image/png","name":"n","uri":"u:","text":"t","later":null}`:                  `{"later":null,"name":"n","text":"t","type":"image","uri":"u:"}`,
		`{"type":"audio","data":"","mimeType":"audio/wav"}`:                                                                    `{"type":"audio"}`,
		`{"type":"resource_link","uri":"u:","name":"n","mimeType":"m","text":"t","title":"T"}`:                                 `{"text":"t","title":"T"}`,
		`{"type":"resource","resource":{"uri":"u:","mimeType":"m","text":"t"}}`:                                                "",
		`{"type":"resource","resource":{"uri":"u:","text":"t","name":"n","data":1},"uri":"u:","name":"n","mimeType":"m"}`:      `{"mimeType":"m","name":"n","resource":{"data":1,"name":"n"},"uri":"u:"}`,
	} {
		var b block
		if err := b.decode([]byte(raw)); err != nil || b.content() == nil || string(b.extra) != want {
			t.Errorf("%s: %s, want %s; %v", raw, b.extra, want, err)
		}
	}
}

// Servers that write every field they know write an empty one for what is not there.
func TestAResourceOfTextAndNoBytes(t *testing.T) {
	var b block
	if err := b.decode([]byte(`{"type":"resource","resource":{"uri":"u:","text":"t","blob":""}}`)); err != nil || b.content().GetResource().GetText() != "t" {
		t.Errorf("%v, %v", b.content(), err)
	}
}
