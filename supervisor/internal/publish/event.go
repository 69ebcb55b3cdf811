package publish

import (
	"unicode/utf8"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/text"
)

// maxEventBytes bounds one event: events wait for slow readers in memory. The
// result has what an event leaves out.
const maxEventBytes = 16 << 10

func cutText(s string) string { return text.Begin(s, maxEventBytes) }

// split gives as much of s as an event has room for, of whole characters, and the rest.
func split(s string, room int) (part, rest string) {
	if len(s) <= room {
		return s, ""
	}
	n := max(room, 0)
	for n > max(room-utf8.UTFMax, 0) && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n], s[n:]
}

// cutContent bounds what cannot be split.
func cutContent(c api.Content) *api.Content {
	size := c.Bytes()
	if size <= maxEventBytes {
		return &c
	}
	c.JSON, c.Data, c.Extra = nil, nil, nil
	c.Text, c.URI, c.Name = text.Bytes(c.Text, maxEventBytes), text.Bytes(c.URI, maxEventBytes), text.Bytes(c.Name, maxEventBytes)
	c.LeftOutBytes = int64(size - c.Bytes())
	return &c
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
