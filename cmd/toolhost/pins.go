package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/internal/text"
	"github.com/toolhost/toolhost/internal/tools/config"
	"github.com/toolhost/toolhost/internal/tools/pins"
)

// pinnedServer is a server with what it says of its tools, and what was accepted.
type pinnedServer struct {
	entry         config.Tool
	file          pins.File
	before, after map[string]pins.Tool
	unread        error // why before cannot be known
	// only are the server's tools that are meant; nil is all.
	only []string
}

// reviewPins shows how servers' tools differ from what was accepted, and accepts
// them if it is told to.
func reviewPins(w io.Writer, flags *callFlags, words []string, accept bool) error {
	k, err := flags.open()
	if err != nil {
		return err
	}
	defer k.Close()
	servers, err := k.pinnedServers(words)
	if err != nil {
		return err
	}
	differ := false
	for _, s := range servers {
		differ = s.show(w) || differ
		if accept {
			if err := s.accept(); err != nil {
				return exit.With(exit.Failed, fmt.Errorf("cannot accept the tools of %s: %w", s.entry.Name, err))
			}
		}
	}
	switch {
	case !differ:
		fmt.Fprintln(w, "the tools are as they were accepted")
	case accept:
		fmt.Fprintln(w, "accepted; what runs takes it up within a minute, or when it loads its configuration again")
	default:
		return &exit.Error{Code: exit.Failed}
	}
	return nil
}

// pinnedServers describes the servers that words name, themselves or by their
// tools; no words are all.
func (k *app) pinnedServers(words []string) (list []pinnedServer, err error) {
	only := map[string][]string{}
	for _, word := range words {
		entry, own, err := k.pinnedTool(word)
		if err != nil {
			return nil, err
		}
		if known, both := only[entry]; both && (known == nil || own == nil) {
			own = nil
		} else {
			own = append(known, own...)
		}
		only[entry] = own
	}
	for _, entry := range k.catalog.Pinned() {
		own, named := only[entry.Name]
		if len(words) > 0 && !named {
			continue
		}
		s, err := k.pinnedServer(entry, own)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	if len(list) == 0 {
		return nil, exit.Usagef("there is no MCP server whose tools are pinned: that takes a state folder, and pin must not be false")
	}
	return list, nil
}

// pinnedTool is the server that a word names, and the one tool of it that is
// meant, by the server's own name; nil for all.
func (k *app) pinnedTool(word string) (entry string, own []string, err error) {
	if slices.ContainsFunc(k.catalog.Pinned(), func(t config.Tool) bool { return t.Name == word }) {
		return word, nil, nil
	}
	tool, err := k.catalog.Find(context.Background(), word)
	if err != nil {
		return "", nil, exit.With(exit.Failed, err)
	}
	name := tool.Own()
	if _, pinned := k.catalog.Pins(tool.Entry); name == "" || !pinned {
		return "", nil, exit.Usagef("%s is not pinned: tools of MCP servers are, with a state folder and unless pin is false", word)
	}
	return tool.Entry.Name, []string{name}, nil
}

func (k *app) pinnedServer(entry config.Tool, only []string) (s pinnedServer, err error) {
	s = pinnedServer{entry: entry, only: only}
	s.file, _ = k.catalog.Pins(entry)
	if s.after, err = k.catalog.Said(context.Background(), entry); err != nil {
		return s, exit.With(exit.Failed, err)
	}
	if s.before, err = s.file.Read(); !errors.Is(err, fs.ErrNotExist) {
		s.unread = err
	}
	return s, nil
}

// accept pins what the server says now; of one tool that alone.
func (s pinnedServer) accept() error {
	tools := s.after
	if s.only != nil {
		if s.unread != nil {
			return fmt.Errorf("%w: accept all of its tools", s.unread)
		}
		tools = map[string]pins.Tool{}
		maps.Copy(tools, s.before)
		for _, name := range s.only {
			tools[name] = s.after[name]
		}
	}
	if len(tools) == 0 {
		return errors.New("it says that it has none")
	}
	return s.file.Accept(tools)
}

// show writes what differs, and says whether anything does.
func (s pinnedServer) show(w io.Writer) (differs bool) {
	title := fmt.Sprintf("%s (%s), accepted in %s", s.entry.Name, s.entry.Source, s.file.Path())
	line := func(format string, args ...any) {
		if !differs {
			fmt.Fprintln(w, terminal.OneLine(title))
		}
		differs = true
		fmt.Fprintf(w, format, args...)
	}
	if s.unread != nil {
		line("  cannot be read: %s\n", terminal.OneLine(s.unread.Error()))
	}
	for _, name := range s.names() {
		before, was := s.before[name]
		after, is := s.after[name]
		shown := terminal.OneLine(name)
		switch {
		case !is:
			line("  gone     %s\n", shown)
		case !was:
			line("  new      %s\n", shown)
			before = pins.Tool{}
		}
		for _, c := range pins.Changes(before, after) {
			if !is {
				break
			}
			if was {
				line("  changed  %s: %s\n", shown, c.Part)
			}
			for _, one := range []struct{ mark, text string }{{"-", fromWhere(c.Before, c.After)}, {"+", fromWhere(c.After, c.Before)}} {
				if was || one.mark == "+" && one.text != "" {
					line("    %s %s\n", one.mark, terminal.OneLine(one.text))
				}
			}
		}
	}
	return differs
}

// names are the tools that are meant, of before and after.
func (s pinnedServer) names() []string {
	if s.only != nil {
		return s.only
	}
	all := maps.Clone(s.after)
	if all == nil {
		all = map[string]pins.Tool{}
	}
	maps.Copy(all, s.before)
	return slices.Sorted(maps.Keys(all))
}

const (
	maxDiffRunes = 4000
	diffContext  = 40
)

// fromWhere is a text; a long one from where it begins to differ.
func fromWhere(s, other string) string {
	if len(s) <= maxDiffRunes {
		return s
	}
	same := 0
	for same < min(len(s), len(other)) && s[same] == other[same] {
		same++
	}
	from := max(0, same-diffContext)
	return fmt.Sprintf("(from byte %d of %d) %s", from, len(s), text.Cut(strings.ToValidUTF8(s[from:], ""), maxDiffRunes))
}
