package manual

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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
	// See are more pages to name, such as toolhost.yaml(5).
	See []string
}

// Commands writes a page for root and each of its visible commands into dir, as
// NAME.1 and NAME-COMMAND.1; commands of commands are in their parent's page.
func Commands(dir string, root *cobra.Command, o Options) error {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	commands := append([]*cobra.Command{root}, visible(root)...)
	for _, c := range commands {
		name := pageName(c)
		if err := os.WriteFile(filepath.Join(dir, name+".1"), []byte(commandPage(c, o)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func visible(c *cobra.Command) (list []*cobra.Command) {
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			list = append(list, sub)
		}
	}
	return list
}

func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

func commandPage(c *cobra.Command, o Options) string {
	p := &page{}
	p.title(pageName(c), "1", o)
	p.section("Name")
	p.lines(escape(pageName(c)) + ` \- ` + escape(firstLower(c.Short)))
	p.section("Synopsis")
	p.lines(synopsis(c))
	p.section("Description")
	p.prose(long(c))
	if !c.HasParent() {
		p.section("Commands")
		for _, sub := range visible(c) {
			p.item(bold(pageName(sub))+"(1)", sub.Short)
		}
	} else {
		for _, sub := range visible(c) {
			p.subcommand(sub)
		}
	}
	p.options(c)
	if c.Example != "" {
		p.section("Examples")
		p.verbatim(c.Example)
	}
	if !c.HasParent() && len(o.Files) > 0 {
		p.section("Files")
		for _, f := range o.Files {
			p.item(italic(f[0]), f[1])
		}
	}
	p.section("See also")
	p.lines(strings.Join(related(c, o), ", "))
	return p.String()
}

// subcommand is a command of a command, in its parent's page.
func (p *page) subcommand(c *cobra.Command) {
	p.section(c.CommandPath())
	p.lines(synopsis(c))
	p.paragraph()
	p.prose(long(c))
	for _, line := range flags(c.LocalFlags()) {
		p.item(line[0], line[1])
	}
	if c.Example != "" {
		p.paragraph()
		p.verbatim(c.Example)
	}
}

func (p *page) options(c *cobra.Command) {
	list := append(flags(c.NonInheritedFlags()), flags(c.InheritedFlags())...)
	if len(list) > 0 {
		p.section("Options")
	}
	for _, line := range list {
		p.item(line[0], line[1])
	}
}

// flags are the visible ones: how each is written, and what it means.
func flags(set *pflag.FlagSet) (list [][2]string) {
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		term := bold("--" + f.Name)
		if f.Shorthand != "" {
			term = bold("-"+f.Shorthand) + ", " + term
		}
		if value != "" {
			term += " " + italic(value)
		}
		list = append(list, [2]string{term, firstUpper(usage) + "."})
	})
	return list
}

// synopsis has the command in bold and what the user puts in as it is written.
func synopsis(c *cobra.Command) string {
	path := c.CommandPath()
	rest := strings.TrimPrefix(c.UseLine(), path)
	if len(visible(c)) > 0 {
		rest = " COMMAND [flags]"
	}
	return bold(path) + escape(rest)
}

func long(c *cobra.Command) string {
	if c.Long == "" {
		return c.Short + "."
	}
	return c.Long
}

func related(c *cobra.Command, o Options) (list []string) {
	name := func(c *cobra.Command) string { return bold(pageName(c)) + "(1)" }
	if c.HasParent() {
		list = append(list, name(c.Parent()))
	} else {
		for _, sub := range visible(c) {
			list = append(list, name(sub))
		}
	}
	list = append(list, seeAlso(o.See)...)
	slices.Sort(list)
	return slices.Compact(list)
}

func firstLower(s string) string {
	if len(s) > 1 && strings.ToUpper(s[1:2]) == s[1:2] { // an abbreviation
		return s
	}
	return strings.ToLower(s[:min(1, len(s))]) + s[min(1, len(s)):]
}

func firstUpper(s string) string { return strings.ToUpper(s[:min(1, len(s))]) + s[min(1, len(s)):] }
