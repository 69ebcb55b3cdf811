package publish

import (
	"strings"
	"unicode/utf8"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/text"
)

// TextBegin is as much of p, as text, as an event can hold, and a little more
// where there is more.
func TextBegin(p []byte) string {
	return strings.ToValidUTF8(string(p[:min(len(p), maxEventBytes+utf8.UTFMax)]), "\uFFFD")
}

// maxEventBytes bounds one event: events wait for slow readers in memory. The
// result has what an event leaves out.
const maxEventBytes = 16 << 10

func cutText(s string) string { return text.Begin(s, maxEventBytes) }

func cutContent(c *api.Content) *api.Content {
	if c == nil || len(c.Text)+len(c.JSON)+len(c.Data)+len(c.URI)+len(c.Name) <= maxEventBytes {
		return c
	}
	return &api.Content{Type: c.Type, Text: cutText(c.Text), MIMEType: c.MIMEType, URI: cutText(c.URI), Name: cutText(c.Name)}
}
