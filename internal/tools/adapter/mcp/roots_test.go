package mcp

import "testing"

// A server gets the client's roots as far as they are granted, and the grants where
// no client names any.
func TestRootsAreCutToTheGrants(t *testing.T) {
	o := Options{Roots: []string{"/home/me/notes", "/srv"}}
	for given, want := range map[string]string{
		"": `{"roots":[{"uri":"file:///home/me/notes","name":"notes"},{"uri":"file:///srv","name":"srv"}]}`,
		`{"roots":[{"uri":"file:///home/me/notes/a","name":"A"},{"uri":"file:///home/me"},{"uri":"file:///home/me/notes2"},{"uri":"https://x/srv"},{"uri":"file:///srv/../etc"}]}`: `{"roots":[{"uri":"file:///home/me/notes/a","name":"A"}]}`,
		`{"roots":[]}`: `{"roots":[]}`,
	} {
		if got := string(o.granted([]byte(given))); got != want {
			t.Errorf("%s: %s, want %s", given, got, want)
		}
	}
}
