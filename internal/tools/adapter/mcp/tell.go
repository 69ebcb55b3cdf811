package mcp

import (
	"encoding/json"
	"strconv"

	"github.com/toolhost/toolhost/internal/text"
)

// progress is a server's progress notification.
type progress struct {
	Token    string `json:"progressToken"`
	Progress float64
	Total    float64
	Message  string
}

// report hands progress on, and keeps it for the partial result.
func (c *call) report(p progress) {
	said, fraction := strconv.FormatFloat(p.Progress, 'g', 12, 64), -1.0
	if p.Total > 0 {
		said += " of " + strconv.FormatFloat(p.Total, 'g', 12, 64)
		fraction = max(p.Progress/p.Total, 0)
	}
	if p.Message != "" {
		said += ": " + text.Begin(p.Message, maxNoteBytes)
	}
	c.mu.Lock()
	c.last = said
	c.mu.Unlock()
	_ = c.out.Progress(fraction, said)
}

// showProgress makes the last progress content, once: all that there is of a
// result.
func (c *call) showProgress() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last != "" && !c.shown {
		c.shown = true
		_ = c.out.Textf("[no result; the last progress was %s]\n", c.last)
	}
}

func (w *wire) progress(params []byte) {
	var p progress
	if json.Unmarshal(params, &p) != nil {
		return
	}
	w.mu.Lock()
	c := w.calls[p.Token]
	w.mu.Unlock()
	if c != nil {
		c.report(p)
	}
}

// log gives a message to all calls: it does not say which one it is about. A
// server may not care which level it was asked for.
func (w *wire) log(params []byte) {
	var m struct {
		Level, Logger string
		Data          json.RawMessage
		Meta          json.RawMessage `json:"_meta"`
	}
	if json.Unmarshal(params, &m) != nil {
		return
	}
	var said string
	if json.Unmarshal(m.Data, &said) != nil {
		said = string(m.Data)
	}
	if m.Logger != "" {
		said = m.Logger + ": " + said
	}
	data, meta := m.Data, m.Meta
	if len(data) > maxNoteBytes {
		data = nil // the text has its beginning
	}
	if len(meta) > maxNoteBytes || !isObject(meta) {
		meta = nil
	}
	runs := false
	for _, c := range w.running() {
		err := error(nil)
		if c.wants(m.Level) {
			err = c.out.Note(text.Begin(m.Level, maxWordBytes), text.Begin(m.Logger, maxWordBytes), data, meta, text.Begin(m.Level+": "+said, maxNoteBytes))
		}
		runs = runs || err == nil // else it has just ended
	}
	if !runs {
		w.announce(methodLog, params)
	}
}

// isObject says whether JSON is an object, as it stands in a message.
func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

// maxWordBytes bounds a level, and the name of a logger.
const maxWordBytes = 128

// maxNoteBytes bounds the text of a server's progress in one event.
const maxNoteBytes = 4 << 10
