package manual

import (
	"regexp"
	"strings"
)

// Markdown makes a page of a document: headings, paragraphs, lists, fenced code
// and tables, whose first column becomes the term and whose last one the meaning.
// summary is the page's one line.
func Markdown(name, section, summary, text string, o Options) string {
	p := &page{}
	p.title(name, section, o)
	p.section("Name")
	p.lines(escape(name) + ` \- ` + escape(summary))
	p.section("Description")
	lines := strings.Split(text, "\n")
	for len(lines) > 0 {
		lines = p.block(lines)
	}
	if len(o.See) > 0 {
		p.section("See also")
		p.lines(strings.Join(seeAlso(o.See), ", "))
	}
	return p.String()
}

func seeAlso(pages []string) (list []string) {
	for _, s := range pages {
		page, section, _ := strings.Cut(s, "(")
		list = append(list, bold(page)+"("+section)
	}
	return list
}

// block writes what the first line begins, and returns the rest.
func (p *page) block(lines []string) []string {
	line := lines[0]
	switch {
	case line == "", strings.HasPrefix(line, "# "), strings.HasPrefix(line, "<!--"):
		return lines[1:] // the page's title is its name
	case strings.HasPrefix(line, "### "):
		p.subsection(plain(line[4:]))
		return lines[1:]
	case strings.HasPrefix(line, "## "):
		p.section(plain(line[3:]))
		return lines[1:]
	case strings.HasPrefix(line, "```"):
		code, rest := until(lines[1:], func(l string) bool { return strings.HasPrefix(l, "```") })
		p.paragraph()
		p.verbatim(strings.Join(code, "\n"))
		return rest[min(1, len(rest)):]
	case strings.HasPrefix(line, "|"):
		table, rest := until(lines, func(l string) bool { return !strings.HasPrefix(l, "|") })
		p.table(table)
		return rest
	case strings.HasPrefix(line, "- "):
		p.WriteString(".IP \\(bu 2\n")
		p.lines(inline(line[2:]))
		return lines[1:]
	}
	p.paragraph()
	p.lines(inline(line))
	return lines[1:]
}

func until(lines []string, end func(string) bool) (block, rest []string) {
	for i, l := range lines {
		if end(l) {
			return lines[:i], lines[i:]
		}
	}
	return lines, nil
}

// table writes each row as a term with the columns between in brackets.
func (p *page) table(rows []string) {
	for i, row := range rows {
		cells := strings.Split(strings.Trim(strings.ReplaceAll(row, `\|`, "\x00"), "|"), "|")
		if i < 2 || len(cells) < 2 {
			continue // the head and its rule
		}
		for j := range cells {
			cells[j] = strings.TrimSpace(strings.ReplaceAll(cells[j], "\x00", "|"))
		}
		last := cells[len(cells)-1]
		p.WriteString(".TP\n")
		p.lines(inline(cells[0]))
		text := inline(firstUpper(last)) + "."
		if len(cells) > 2 && cells[1] != "" {
			text += " Value: " + inline(cells[1]) + "."
		}
		if len(cells) > 3 && cells[2] != "" {
			text += " Default: " + inline(cells[2]) + "."
		}
		p.lines(text)
	}
}

var (
	link = regexp.MustCompile(`\[([^]]+)\]\([^)]*\)`)
	span = regexp.MustCompile("`([^`]+)`|\\*\\*([^*]+)\\*\\*")
)

// plain leaves out what marks text up.
func plain(text string) string {
	return strings.NewReplacer("`", "", "**", "").Replace(link.ReplaceAllString(text, "$1"))
}

// inline keeps code and emphasis as bold, and the words of links.
func inline(text string) string {
	text = link.ReplaceAllString(text, "$1")
	var out strings.Builder
	for at := span.FindStringIndex(text); at != nil; at = span.FindStringIndex(text) {
		marked := text[at[0]:at[1]]
		mark := len(marked) - len(strings.TrimPrefix(strings.TrimPrefix(marked, "`"), "**"))
		out.WriteString(escape(text[:at[0]]) + bold(marked[mark:len(marked)-mark]))
		text = text[at[1]:]
	}
	out.WriteString(escape(text))
	return out.String()
}
