package mcp

import "testing"

// A server gets the client's roots as far as they are granted, and the grants where
// no client names any.
func TestRootsAreCutToTheGrants(t *testing.T) {
	o := Options{Roots: []string{"/home/me/notes", "/srv"}}
	for given, want := range map[string]string{
		"": `{"roots":[{"uri":"file:///home/me/notes","name":"notes"},{"uri":"file:///srv","name":"srv"}]}`,
		`{"roots":[{"uri":"file:///home/me/notes/a","name":"A"},{"uri":"file:///home/me"},{"uri":"file:///home/me/notes2"},{"uri":"https://x/srv"},{"uri":"file:///srv/../etc"}]}`: `{"roots":[{"uri":"file:///home/me/notes/a","name":"A"}]}`,
		`{"roots":[{"uri":"file:///srv","name":null,"_meta":{"n":1.10}},{"uri":5}]}`:                                                                                               `{"roots":[{"uri":"file:///srv","name":null,"_meta":{"n":1.10}}]}`,
		`{"roots":[]}`:   `{"roots":[]}`,
		`{"roots":null}`: `{"roots":[{"uri":"file:///home/me/notes","name":"notes"},{"uri":"file:///srv","name":"srv"}]}`,
	} {
		if got := string(o.granted([]byte(given))); got != want {
			t.Errorf("%s: %s, want %s", given, got, want)
		}
	}
}

// So it is with roots among the answers that a server of 2026-07-28 gets with the next
// round of a call; the others are passed on as they are.
func TestRootsInAnswersAreCut(t *testing.T) {
	o := Options{Roots: []string{"/srv"}}
	given := `{"a":{"roots":[{"uri":"file:///etc"},{"uri":"file:///srv/x"}]},"b":{"roots":null},"c":{"action":"accept","content":{"roots":1}}}`
	want := `{"a":{"roots":[{"uri":"file:///srv/x"}]},"b":{"roots":[{"uri":"file:///srv","name":"srv"}]},"c":{"action":"accept","content":{"roots":1}}}`
	if got := string(o.grantedIn([]byte(given))); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
