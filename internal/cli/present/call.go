package present

import (
	"fmt"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/internal/text"
)

// call is one line of a View.
type call struct {
	id            string
	shownID, tool string
	state         string
	started       time.Time
	timeout       time.Duration // 0 means none
	asked         int           // questions that wait for a human
	askedSince    time.Time
	waited        time.Duration // for a human, since it started
	progress      string
}

// maxShownID and maxShownTool bound what a line shows of a name.
const (
	maxShownID   = 16
	maxShownTool = 24
)

func newCall(e api.Event) *call {
	return &call{
		id: e.CallID, shownID: Fit(terminal.Cell(e.CallID), maxShownID), tool: Fit(terminal.Cell(e.Tool), maxShownTool), state: "queued",
	}
}

func (c *call) take(e api.Event) {
	switch e.Kind {
	case api.EventStarted:
		c.state, c.started = "running", e.Time
		c.timeout = time.Duration(e.TimeoutMs) * time.Millisecond
	case api.EventProgress:
		if text := progressText(e); text != "" {
			c.progress = text
		}
	case api.EventTimeout:
		c.state = "stopping"
	case api.EventInteractionPending:
		c.ask(e)
	}
}

// ask stops the call's clock while somebody is asked.
func (c *call) ask(e api.Event) {
	began := c.asked == 0
	if e.Pending != nil && *e.Pending {
		c.asked++
		if began {
			c.askedSince = e.Time
		}
		c.state = "asking"
		return
	}
	c.asked = max(c.asked-1, 0)
	if c.asked > 0 {
		return
	}
	c.state = "queued"
	if !c.started.IsZero() {
		c.state = "running"
		c.waited += e.Time.Sub(c.askedSince)
	}
}

func (c *call) rank() int {
	switch c.state {
	case "asking":
		return 0
	case "queued":
		return 2
	}
	return 1
}

// line is what there is to be said beside the names: time and progress.
func (c *call) line(now time.Time) string {
	if c.started.IsZero() {
		return ""
	}
	if c.asked > 0 {
		now = c.askedSince
	}
	text := fmt.Sprintf("%.1fs", max(now.Sub(c.started)-c.waited, 0).Seconds())
	if c.timeout > 0 {
		text += " of " + c.timeout.String()
	}
	if c.progress != "" {
		text += "  " + c.progress
	}
	return text
}

// progressText is empty for the progress that only says that the call goes on.
func progressText(e api.Event) string {
	text := terminal.Cell(text.FirstLine(e.Message))
	if e.Fraction != nil {
		return fmt.Sprintf("%3.0f%%  %s", *e.Fraction*100, text)
	}
	return text
}
