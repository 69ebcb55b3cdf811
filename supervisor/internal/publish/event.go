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
	if c == nil || c.Bytes() <= maxEventBytes {
		return c
	}
	return &api.Content{Type: c.Type, Text: cutText(c.Text), MIMEType: c.MIMEType, URI: cutText(c.URI), Name: cutText(c.Name), Block: c.Block}
}

// maxWordBytes bounds a level and a logger of an adapter's server, maxLogBytes a
// logged value.
const (
	maxWordBytes = 128
	maxLogBytes  = 8 << 10
)

// CutWord bounds a level, or the name of a logger.
func CutWord(s string) string { return text.Bytes(s, maxWordBytes) }

// ShortLog is empty for a value that is too long: the message has its beginning.
func ShortLog(data []byte) []byte {
	if len(data) > maxLogBytes {
		return nil
	}
	return data
}
