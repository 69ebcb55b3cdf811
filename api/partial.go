package api

import "strings"

// Partial collects the output of one call from its events, for the result of a call whose
// end was not observed. The zero value is empty. It is not safe for concurrent use.
type Partial struct {
	// Missed counts the events that were dropped on the way; some may have had output.
	Missed         int
	content        []Content
	text           held // the text at the end of content, which may go on
	contentBytes   ContentOutput
	stdout, stderr held
}

// Bounds of a Partial: the bytes of each of its streams, and the pieces of its content.
const (
	maxPartialBytes  = 1 << 20
	maxPartialPieces = 16 << 10
)

// held is the beginning of a stream.
type held struct {
	head          strings.Builder
	seen, dropped int64
}

// Take adds the output in an event.
func (p *Partial) Take(e Event) {
	p.Missed += e.Missed
	if e.Kind != EventOutput || e.Content == nil {
		return
	}
	switch e.Stream {
	case "stdout":
		p.stdout.add(e.Content.Text)
	case "stderr":
		p.stderr.add(e.Content.Text)
	default:
		p.add(*e.Content)
	}
}

// add drops the first piece that does not fit or is not whole, and all that follow.
func (p *Partial) add(c Content) {
	n := int64(c.Bytes()) + c.LeftOutBytes
	p.contentBytes.SeenBytes += n
	if c.LeftOutBytes > 0 || p.contentBytes.DroppedBytes > 0 || p.contentBytes.KeptBytes+n > maxPartialBytes || len(p.content) >= maxPartialPieces {
		p.contentBytes.DroppedBytes += n
		return
	}
	p.contentBytes.KeptBytes += n
	if c.Type == "text" && !c.Block && len(c.Extra) == 0 {
		p.text.add(c.Text)
		return
	}
	p.endText()
	p.content = append(p.content, c)
}

func (p *Partial) endText() {
	if p.text.seen > 0 {
		p.content = append(p.content, Content{Type: "text", Text: p.text.head.String()})
	}
	p.text = held{}
}

func (h *held) add(text string) {
	n := int64(len(text))
	h.seen += n
	if h.dropped > 0 || h.seen > maxPartialBytes {
		h.dropped += n
		return
	}
	h.head.WriteString(text)
}

func (h *held) output() StreamOutput {
	return StreamOutput{Head: h.head.String(), SeenBytes: h.seen, KeptBytes: h.seen - h.dropped, DroppedBytes: h.dropped}
}

// Cut reports whether output of the call is missing.
func (p *Partial) Cut() bool {
	return p.Missed > 0 || p.contentBytes.DroppedBytes > 0 || p.stdout.dropped > 0 || p.stderr.dropped > 0
}

// Fill copies the output to a result, and sets r.Partial to whether there is any.
func (p *Partial) Fill(r *Result) {
	p.endText()
	if len(p.content) > 0 {
		r.Content = p.content
	}
	r.Output.Content, r.Output.Stdout, r.Output.Stderr = p.contentBytes, p.stdout.output(), p.stderr.output()
	r.Partial = p.any()
}

func (p *Partial) any() bool { return p.contentBytes.KeptBytes+p.stdout.seen+p.stderr.seen > 0 }

// Arrived returns a sentence for a result's message that says whether there is any output.
func (p *Partial) Arrived() string {
	if p.any() {
		return "What it had sent until then is in this result."
	}
	return "No output of it has arrived."
}
