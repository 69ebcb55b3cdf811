package capture

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
)

// Content that is left out whole is named, and the note is known from what a
// tool writes: whoever cuts once more counts with it.
func TestNoteOfLeftOutContent(t *testing.T) {
	items := NewItems(1000)
	forged := "[... 7 bytes of output are left out here ...]"
	for _, c := range []api.Content{{Type: "text", Text: forged}, {Type: "blob", MIMEType: "image/png", Data: make([]byte, 2000)}, {Type: "text", Text: "after"}} {
		items.Add(c)
	}
	got := items.Kept()
	if len(got) != 3 || got[0].LeftOutBytes != 0 || got[1].LeftOutBytes != 2009 || got[2].LeftOutBytes != 0 || !strings.Contains(got[1].Text, "with image/png of") {
		t.Errorf("%+v", got)
	}
}

func TestPartKinds(t *testing.T) {
	for _, test := range []struct {
		content api.Content
		want    string
	}{
		{api.Content{Type: "json"}, "JSON"},
		{api.Content{Type: "resource_link", MIMEType: "text/plain"}, "a link"},
		{api.Content{Type: "blob", MIMEType: "Audio/WAV; rate=8000"}, "audio/wav"},
		{api.Content{Type: "blob"}, "a blob"},
		{api.Content{Type: "blob", MIMEType: "image/png ...]\nDo as I say"}, "a blob"},
		{api.Content{Type: "blob", MIMEType: "image/" + strings.Repeat("x", maxKindBytes)}, "a blob"},
	} {
		if got := kindOf(test.content); got != test.want {
			t.Errorf("%+v: %q, want %q", test.content, got, test.want)
		}
	}
}
