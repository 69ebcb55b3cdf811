package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/stage"
)

func TestContent(t *testing.T) {
	t.Parallel()
	a := server(t, "content")
	for _, test := range []struct {
		name, result string
		events       string
		structured   string
		err          string // a part, "" for none
	}{
		{"text", `{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`, "text a|text b", "", ""},
		{"nothing", `{"content":[]}`, "", "", ""},
		{"image and audio", `{"content":[{"type":"image","data":"aGk=","mimeType":"image/png"},{"type":"audio","data":"","mimeType":"audio/wav"}]}`, `blob image/png "hi"|blob audio/wav ""`, "", ""},
		{
			"other Base64", `{"content":[{"type":"image","data":"aGk","mimeType":"image/png"},{"type":"image","data":"Pj4-\nPz8_","mimeType":"image/png"},{"type":"resource","resource":{"uri":"u:x","blob":"Pz8_aA=="}},{"type":"audio","data":7}]}`,
			`blob image/png "hi"|blob image/png ">>>???"|resource u:x  "???h"|text [a part of the result is left out: it is of no kind that MCP has: {"type":"audio","data":7}]` + "\n", "", "",
		},
		{"link", `{"content":[{"type":"resource_link","uri":"file:///x","name":"x","mimeType":"text/plain"}]}`, "link file:///x x text/plain", "", ""},
		{
			"resource", `{"content":[{"type":"resource","resource":{"uri":"u:x","text":"t"}},{"type":"resource","resource":{"uri":"u:y","mimeType":"m","blob":"aGk="}},{"type":"resource"}]}`,
			"resource u:x  \"t\"|resource u:y m \"hi\"|text [a part of the result is left out: it is of no kind that MCP has: {\"type\":\"resource\"}]\n", "", "",
		},
		{"structured", `{"content":[{"type":"text","text":"{}"}],"structuredContent":{"n":12345678901234567890,"b":1,"a":2},"_meta":{"x":1}}`, "text {}", `{"n":12345678901234567890,"b":1,"a":2}`, ""},
		{"structured alone", `{"structuredContent":[1]}`, "", `[1]`, ""},
		{"null", `{"content":[],"structuredContent":null}`, "", "", ""},
		{
			"one bad part", `{"content":[{"type":"text","text":"a"},{"type":"hologram"},7,{"type":"tool_use","id":"1","name":"n","input":{}},{"type":"image","data":"%%%"},{"type":"text","text":"b"}]}`,
			"text a|text [a part of the result is left out: it is of no kind that MCP has: {\"type\":\"hologram\"}]\n|text [a part of the result is left out: it is of no kind that MCP has: 7]\n|" +
				"text [a part of the result is left out: it is of no kind that MCP has: {\"type\":\"tool_use\",\"id\":\"1\",\"name\":\"n\",\"input\":{}}]\n|" +
				"text [a part of the result is left out: its data is not Base64: {\"type\":\"image\",\"data\":\"%%%\"}]\n|text b", "", "",
		},
		{
			"large", `{"content":[{"type":"image","mimeType":"image/png","data":"` + big(4*(maxPartBytes+30)/3) + `"}],"structuredContent":"` + big(maxPartBytes) + `"}`,
			"text [image/png is left out: it has 3145783 bytes, at most 3145728 can be passed on]\n|text [the structured result is left out: it has 3145730 bytes, at most 3145728 can be passed on]\n", "", "",
		},
		{"error", `{"isError":true,"content":[{"type":"text","text":"no such file"},{"type":"text","text":"try another"}],"structuredContent":{}}`, "text no such file|text try another", "", "no such file\ntry another"},
		{"error without a word", `{"isError":true,"content":[]}`, "", "", "says nothing"},
		{"error in a value", `{"isError":true,"content":[],"structuredContent":{"code":7}}`, "", "", `{"code":7}`},
		{"long error", `{"isError":true,"content":[{"type":"text","text":"` + big(10000) + `"}]}`, "text " + big(10000), "", big(maxErrorBytes) + "…"},
		{"no result", `{}`, "", "", "form that MCP does not have"},
		{"a list", `[]`, "", "", "form that MCP does not have"},
		{"text for a list", `{"content":"a"}`, "", "", "form that MCP does not have"},
	} {
		r, o := call1(t, a, "x", fmt.Sprintf(`{"result":%s}`, test.result))
		if got := strings.Join(r.list(), "|"); got != test.events {
			t.Errorf("%s: sent %.2000q, want %.2000q", test.name, got, test.events)
		}
		if string(o.structured) != test.structured || (o.err == nil) != (test.err == "") || o.err != nil && !strings.Contains(o.err.Error(), test.err) {
			t.Errorf("%s: %s, %v", test.name, o.structured, o.err)
		}
	}
}

// Behind the first ones very many parts are few messages.
func TestManyTexts(t *testing.T) {
	stage.Whole(t)
	t.Parallel()
	const parts = 50000
	r, o := call1(t, server(t, "content"), "x", `{"result":{"content":[`+strings.Repeat(`{"type":"text","text":"abcdefgh"},`, parts)+`{"type":"text","text":"end"}]}}`)
	sent := strings.ReplaceAll("\n"+r.text(), "\ntext ", "")
	if want := strings.Repeat("abcdefgh", maxBlocks) + strings.Repeat("abcdefgh\n", parts-maxBlocks) + "end\n"; o.err != nil || sent != want || len(r.list()) > maxBlocks+5 {
		t.Errorf("%d bytes in %d events, want %d bytes; %v", len(sent), len(r.list()), len(want), o.err)
	}
}

// What an error has beside its text is passed on as far as a structured result is; what is
// left out beside that has a line.
func TestWhatStandsBesideAnError(t *testing.T) {
	of := func(isError bool, structured, meta int) (callResult, map[string]json.RawMessage) {
		r, err := decodeResult(map[string]json.RawMessage{
			"content": json.RawMessage(`[]`), "isError": json.RawMessage(fmt.Sprint(isError)),
			"structuredContent": json.RawMessage(`"` + big(structured) + `"`), "_meta": json.RawMessage(`"` + big(meta) + `"`),
		})
		if err != nil {
			t.Fatal(err)
		}
		fields := map[string]json.RawMessage{}
		_ = json.Unmarshal(r.Meta, &fields)
		return r, fields
	}
	for _, test := range []struct {
		isError          bool
		structured, meta int
		carried, beside  bool
	}{
		{true, 100 << 10, 10, true, true},
		{true, 40 << 10, 40 << 10, true, true},
		{true, 10, maxMetaBytes, true, false},
		{true, maxPartBytes, 10, false, true},
		{false, 10, 10, false, true},
		{false, 10, maxMetaBytes, false, false},
	} {
		r, fields := of(test.isError, test.structured, test.meta)
		if (fields["structuredContent"] != nil) != test.carried || (fields["_meta"] != nil) != test.beside || (r.lost > 0) == test.beside {
			t.Errorf("%+v: %d bytes of meta, %d lost", test, len(r.Meta), r.lost)
		}
	}
}
