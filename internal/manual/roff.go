package manual

import (
	"fmt"
	"strings"
)

// page is a man page under construction.
type page struct{ strings.Builder }

// title begins a page: name, section, and what stands at its foot.
func (p *page) title(name, section string, o Options) {
	fmt.Fprintf(p, ".TH %s %s %s %s %s\n", quote(strings.ToUpper(name)), section,
		o.Date.UTC().Format("2006-01-02"), quote(strings.TrimSpace("toolhost "+o.Version)), quote(o.Manual))
	// No hyphenation, and text that is not spread to the margin: both break up
	// names that readers copy.
	p.WriteString(".nh\n.ad l\n")
}

func (p *page) section(name string) { fmt.Fprintf(p, ".SH %s\n", quote(strings.ToUpper(name))) }

func (p *page) subsection(name string) { fmt.Fprintf(p, ".SS %s\n", quote(name)) }

// paragraph begins one, unless that has just been done.
func (p *page) paragraph() {
	last := p.String()
	last = last[strings.LastIndex(strings.TrimSuffix(last, "\n"), "\n")+1:]
	if !strings.HasPrefix(last, ".SH") && !strings.HasPrefix(last, ".SS") && !strings.HasPrefix(last, ".PP") {
		p.WriteString(".PP\n")
	}
}

// prose writes paragraphs; lines that are indented stay as they are.
func (p *page) prose(text string) {
	for paragraph := range strings.SplitSeq(strings.Trim(text, "\n"), "\n\n") {
		p.paragraph()
		if strings.HasPrefix(paragraph, "  ") || strings.HasPrefix(paragraph, "\t") {
			p.verbatim(strings.ReplaceAll(paragraph, "\t", ""))
			continue
		}
		p.lines(escape(paragraph))
	}
}

// verbatim shows lines as they are, indented.
func (p *page) verbatim(text string) {
	p.WriteString(".RS 4\n.nf\n")
	p.lines(escape(strings.TrimRight(text, "\n")))
	p.WriteString(".fi\n.RE\n")
}

// item is a term and what it means.
func (p *page) item(term, meaning string) {
	fmt.Fprintf(p, ".TP\n%s\n", guard(term))
	p.lines(escape(meaning))
}

// lines writes text that is escaped already.
func (p *page) lines(text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		p.WriteString(guard(line))
	}
}

func bold(text string) string { return `\fB` + escape(text) + `\fR` }

func italic(text string) string { return `\fI` + escape(text) + `\fR` }

// escape keeps what roff would take for its own: a backslash, and the signs that
// it prints as others, which readers could not copy.
func escape(text string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, "…", "...").Replace(text)
}

// guard keeps a line that begins like a request from being one.
func guard(line string) string {
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		return `\&` + line
	}
	return line
}

// quote makes one argument of a request.
func quote(text string) string { return `"` + strings.ReplaceAll(escape(text), `"`, `\(dq`) + `"` }
