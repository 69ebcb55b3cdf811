package mcp

import "testing"

// A server's bytes that are not text do not pass, not even within what is handed
// on as it came.
func TestMessagesAreUTF8(t *testing.T) {
	for line, want := range map[string]string{
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"structuredContent\":{\"x\":\"\xff\"}}}": "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"structuredContent\":{\"x\":\"\uFFFD\"}}}",
		`{"jsonrpc":"2.0","id":1,"result":{"x":"é"}}`:                                        `{"jsonrpc":"2.0","id":1,"result":{"x":"é"}}`,
	} {
		if got := split([]byte(line)); len(got) != 1 || string(got[0]) != want {
			t.Errorf("%q: %q", line, got)
		}
	}
}
