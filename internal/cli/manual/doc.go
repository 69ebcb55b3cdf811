// Package manual writes man pages: one for each command of a cobra command line,
// and one of a document in Markdown.
package manual

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cpuguy83/go-md2man/v2/md2man"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/toolhost/toolhost/internal/lazy"
)

// Options say what is the same in all pages.
type Options struct {
	// Version and Date stand at the foot; a zero date is 1970.
	Version string
	Date    time.Time
	// Manual is the name of the whole, at the head.
	Manual string
	// Files are paths and what they are, for the page of the root command.
	Files [][2]string
}

// Commands writes a page for root and each of its visible commands into dir, as
// NAME.1 and NAME-COMMAND.1.
func Commands(dir string, root *cobra.Command, o Options) error {
	root.InitDefaultCompletionCmd()
	prepare(root)
	root.Long += list("FILES", o.Files)
	return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Date: &o.Date, Source: o.source(), Manual: o.Manual}, dir)
}

func (o Options) source() string { return strings.TrimSpace("toolhost " + o.Version) }

// list is a section of terms and what they mean.
func list(title string, items [][2]string) string {
	if len(items) == 0 {
		return ""
	}
	text := "\n\n# " + title + "\n"
	for _, one := range items {
		text += "**" + one[0] + "**\n: " + one[1] + "\n\n"
	}
	return strings.TrimRight(text, "\n")
}

// prepare makes Markdown of what commands say about themselves.
func prepare(c *cobra.Command) {
	c.DisableAutoGenTag = true
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if name, _ := pflag.UnquoteUsage(f); name != "" {
			f.DefValue = name // which the page shows; zero values say nothing
		}
	})
	lines := strings.Split(c.Long, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "\t") {
			lines[i] = "    " + line // a block of its own
		}
	}
	var commands [][2]string
	for _, sub := range c.Commands() {
		prepare(sub)
		if sub.IsAvailableCommand() {
			commands = append(commands, [2]string{sub.Name(), sub.Short + "."})
		}
	}
	c.Long = cmp.Or(strings.Join(lines, "\n"), c.Short+".") + list("COMMANDS", commands)
}

// Markdown writes a page of a document as dir/NAME.SECTION; summary is the
// page's one line.
func Markdown(dir, name, section, summary, text string, o Options) error {
	page := fmt.Sprintf("%% %q %q %q %q %q\n# NAME\n%s - %s\n\n# DESCRIPTION\n\n%s",
		strings.ToUpper(name), section, o.Date.UTC().Format("Jan 2006"), o.source(), o.Manual, name, summary, plain(text))
	return os.WriteFile(filepath.Join(dir, name+"."+section), md2man.Render([]byte(page)), 0o644)
}

var (
	title = lazy.Regexp(`(?m)\A# .*$`)
	link  = lazy.Regexp(`\[([^]]+)\]\([^)]*\)`)
	table = lazy.Regexp(`(?m)^\|.*\|\n\|[-| ]+\|\n((?:\|.*\|\n?)+)`)
)

// plain leaves out what a page on a terminal has no use for: the title, where
// links lead, and tables, which are too wide.
func plain(text string) string {
	text = link().ReplaceAllString(title().ReplaceAllString(text, ""), "$1")
	return table().ReplaceAllStringFunc(text, func(rows string) string {
		var list strings.Builder
		for row := range strings.Lines(table().FindStringSubmatch(rows)[1]) {
			list.WriteString(item(row))
		}
		return list.String()
	})
}

// item makes a term of a row's first cell, and of the last what it means.
func item(row string) string {
	const pipe = "\x00" // one that separates nothing
	cells := strings.Split(strings.Trim(strings.ReplaceAll(row, `\|`, pipe), "|\n"), "|")
	for i, cell := range cells {
		cells[i] = strings.TrimSpace(strings.ReplaceAll(cell, pipe, "|"))
	}
	text := cells[len(cells)-1] + "."
	for i, name := range []string{"Value", "Default"} {
		if i+2 < len(cells) && cells[i+1] != "" {
			text += " " + name + ": " + cells[i+1] + "."
		}
	}
	return cells[0] + "\n: " + text + "\n\n"
}
