package mcp

import (
	"strconv"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolhost/toolhost/plugin"
)

// A server whose texts are not UTF-8, unless a tool is good.
func init() {
	scripts["not text"] = func(p *peer) {
		p.initialize()
		for {
			switch m := p.next(); {
			case m.Method == "tools/list":
				p.answer(m, `{"tools":[`+plainTool+`]}`)
			case m.Method == readResource:
				p.answer(m, `{"contents":[{"uri":"u:x","text":"a`+"\xffb\xc3\xff"+`"}]}`)
			case m.param("name") == "good":
				p.text(m, "\uFFFD")
			case m.Method == "tools/call":
				p.answer(m, `{"isError":`+strconv.FormatBool(m.param("name") == "error")+`,"content":[{"type":"text","text":"a`+"\xffb\xc3\xff"+`"}]}`)
			}
		}
	}
}

// A server's bytes that are not text do not pass, not even within what is handed
// on as it came.
func TestMessagesAreUTF8(t *testing.T) {
	for line, want := range map[string]string{
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"structuredContent\":{\"x\":\"\xff\"}}}": "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"structuredContent\":{\"x\":\"\uFFFD\"}}}",
		`{"jsonrpc":"2.0","id":1,"result":{"x":"é"}}`:                                        `{"jsonrpc":"2.0","id":1,"result":{"x":"é"}}`,
	} {
		got := split([]byte(line))
		if len(got) != 1 {
			t.Fatalf("%q: %v", line, got)
		}
		if raw, err := jsonrpc.EncodeMessage(got[0].Message); err != nil || string(raw) != want {
			t.Errorf("%q: %q, %v", line, raw, err)
		}
	}
}

// What is lost of a result that way is said, with the result that it is lost of alone.
func TestBytesThatAreNotText(t *testing.T) {
	t.Parallel()
	a := server(t, "not text")
	const said = "[bytes of this result that are not UTF-8 are left out, 3 in all: \uFFFD stands where they were]\n"
	for tool, want := range map[string]struct{ text, err string }{
		"bad":   {"text a\uFFFDb\uFFFD\ntext " + said, ""},
		"error": {"text a\uFFFDb\uFFFD\ntext " + said, "a\uFFFDb\uFFFD"},
		"good":  {"text \uFFFD", ""},
	} {
		r, o := call1(t, a, tool, "{}")
		if r.text() != want.text || (o.err == nil) != (want.err == "") || o.err != nil && o.err.Error() != want.err {
			t.Errorf("%s: %q, %v; want %q", tool, r.text(), o.err, want.text)
		}
	}
	r := &record{}
	raw, err := a.Request(t.Context(), readResource, []byte(`{"uri":"u:x"}`), plugin.NewOutput(r.send))
	if err != nil || r.text() != "resource u:x  \"a\uFFFDb\uFFFD\"\ntext "+said {
		t.Errorf("a resource: %s, %v, %q", raw, err, r.text())
	}
}
