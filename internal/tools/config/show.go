package config

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/toolhost/toolhost/internal/text"
)

// Show writes what is in force as YAML, each value with its source in a
// comment. Classes are put into the tools that have them, includes into one
// file, and paths made absolute; it can be loaded again. Of variables that
// seem to hold a secret the value is hidden; of secrets there are only the
// names of files.
func (l *Loaded) Show() []byte {
	var s shower
	s.line(0, "# "+cmp.Or(strings.Join(l.Files, ", "), "no file"), "")
	for _, v := range l.Values() {
		if v.Path != includeKey {
			s.value(strings.Split(v.Path, "."), v)
		}
	}
	for i, t := range l.Tools {
		if i == 0 {
			s.line(0, "tools:", "")
		}
		s.tool(t)
	}
	return s.out.Bytes()
}

type shower struct {
	out   bytes.Buffer
	above []string // the mappings that are open
}

func (s *shower) line(depth int, text, comment string) {
	if comment != "" {
		comment = "  # " + oneLine(comment)
	}
	fmt.Fprintf(&s.out, "%s%s%s\n", strings.Repeat("  ", depth), text, comment)
}

// value writes one value below its mappings, and opens those that are not
// open yet.
func (s *shower) value(path []string, v Value) {
	depth := len(path) - 1
	same := 0
	for same < depth && same < len(s.above) && s.above[same] == path[same] {
		same++
	}
	for ; same < depth; same++ {
		s.line(same, text.YAMLKey(path[same])+":", "")
	}
	s.above = path[:depth]
	s.line(depth, text.YAMLKey(path[depth])+": "+v.shown(), v.Source.String())
}

func (v Value) shown() string {
	if v.Text == hidden {
		return text.YAML(hidden)
	}
	return v.Text
}

// tool writes what holds for a tool beyond what holds for all.
func (s *shower) tool(t Tool) {
	s.line(1, text.YAMLKey(t.Name)+":", t.Source.String())
	s.settings([]string{"tools", t.Name}, toolKeys, t.settings, nil)
	if len(t.MCP.Tools) == 0 {
		return
	}
	s.line(2, "tools:", "")
	for _, name := range sortedKeys(t.MCP.Tools) {
		s.line(3, text.YAMLKey(name)+":", t.MCP.Tools[name].Source.String())
		s.settings([]string{"tools", t.Name, "tools", name}, serverToolKeys, t.MCP.Tools[name].settings, t.settings)
	}
}

// settings writes those of one tool that neither the file says for all nor
// above has.
func (s *shower) settings(place []string, keys []*key, l, above layer) {
	s.above = place
	for _, one := range l.ordered(keys) {
		v := one.value("")
		if v.Source.Layer == LayerFile || one.path == "class" || sameSource(above, one) || find(keys, strings.Split(one.path, ".")[0]) == nil {
			continue
		}
		s.value(append(place[:len(place):len(place)], strings.Split(one.path, ".")...), v)
	}
}

func sameSource(above layer, s setting) bool {
	o, ok := above[s.path]
	return ok && o.source == s.source
}
