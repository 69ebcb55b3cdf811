package config

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of one file. The parser's time grows with the square of a mapping's
// keys and of the depth, so both are bounded before it sees the file.
const (
	maxFileBytes = 1 << 20
	maxTokens    = 50_000
	maxDepth     = 24
)

// parseYAML reads a file into nodes. With any problem the node is nil; an empty
// file is an empty mapping.
func parseYAML(f *file, raw []byte, r *report) *node {
	raw = bytes.TrimPrefix(raw, []byte("\uFEFF"))
	f.lines = strings.Split(string(raw), "\n")
	p := yamlReader{file: f, report: r, anchors: map[string]*node{}, left: maxTokens}
	if p.refuseBytes(raw) {
		return nil
	}
	tokens := lexer.Tokenize(string(raw))
	if p.refuseTokens(tokens) {
		return nil
	}
	document, err := parseTokens(tokens)
	switch {
	case err != nil && p.reused: // which may be what it stumbles over
		return nil
	case err != nil:
		p.syntax(err)
		return nil
	}
	return p.document(document)
}

// parseTokens turns a panic of the parser into an error: its input is not ours.
func parseTokens(tokens token.Tokens) (document *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("cannot be read as YAML: %v", r)
		}
	}()
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
}

type yamlReader struct {
	file   *file
	report *report
	// failed: what is wrong hides the rest of the file. reused: the file has
	// anchors, aliases or merge keys, which are followed to find what else is
	// wrong.
	failed, reused bool
	anchors        map[string]*node
	left           int // nodes that aliases may still stand for
}

func (p *yamlReader) problem(line, column int, format string, args ...any) {
	p.failed = true
	p.tell(line, column, format, args...)
}

func (p *yamlReader) tell(line, column int, format string, args ...any) {
	line = max(line, 1)
	p.report.add(Problem{
		Position: Position{File: p.file.name, Line: line, Column: max(column, 1)},
		Message:  fmt.Sprintf(format, args...), excerpt: p.file.line(line),
	})
}

func (p *yamlReader) refuseBytes(raw []byte) bool {
	for i, line := range p.file.lines {
		if !utf8.ValidString(line) {
			p.problem(i+1, 1, "the line is not UTF-8: save the file as UTF-8")
			break
		}
	}
	if len(raw) > maxFileBytes {
		p.problem(1, 1, "the file has more than %d bytes: split it with include", maxFileBytes)
	}
	return p.failed
}

// notTaken are parts of YAML that toolhost.yaml does without: they hide where a
// value comes from, and expand without bounds. See yaml_reuse.go.
var notTaken = map[token.Type]string{
	token.AnchorType:     "%s is a YAML anchor, which is not taken: write the value out, use a class, or quote it if it is text",
	token.AliasType:      "%s is a YAML alias, which is not taken: write the value out, use a class, or quote it if it is text",
	token.MergeKeyType:   "%s is a YAML merge key, which is not taken: use a class",
	token.TagType:        "%s is a YAML tag, which is not taken: leave it out, or quote it if it is text",
	token.DirectiveType:  "%s is a YAML directive, which is not taken: leave it out",
	token.MappingKeyType: "%s is a complex YAML key, which is not taken: write key: value",
}

// refuseTokens looks for what is not taken, before the parser builds anything.
func (p *yamlReader) refuseTokens(tokens token.Tokens) bool {
	depth, dashes, line := 0, 0, 0
	begun := false // by more than comments
	for _, t := range tokens {
		if t.Position.Line != line {
			line, dashes = t.Position.Line, 0
		}
		if message := notTaken[t.Type]; message != "" {
			p.tell(line, t.Position.Column, message, quoted(t.Value))
			reuse := t.Type == token.AnchorType || t.Type == token.AliasType || t.Type == token.MergeKeyType
			p.reused, p.failed = p.reused || reuse, p.failed || !reuse
		}
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		case token.SequenceEntryType:
			dashes++
		case token.DocumentHeaderType:
			if begun && !p.failed { // a directive is followed by one, too
				p.problem(line, t.Position.Column, "a second YAML document begins here: only one is taken, use include")
			}
		}
		begun = begun || t.Type != token.CommentType
		if depth > maxDepth || dashes > maxDepth {
			p.problem(line, t.Position.Column, "the nesting is deeper than %d: nothing in this file needs that", maxDepth)
			return true
		}
	}
	if len(tokens) > maxTokens {
		p.problem(tokens[maxTokens].Position.Line, 1, "the file has %d words and marks, more than %d: split it with include", len(tokens), maxTokens)
	}
	return p.failed
}

// syntax reports the parser's error; it knows one a file.
func (p *yamlReader) syntax(err error) {
	line, column, message := 1, 1, err.Error()
	if syntax := (*yaml.SyntaxError)(nil); errors.As(err, &syntax) {
		message = syntax.Message
		if syntax.Token != nil && syntax.Token.Position != nil {
			line, column = syntax.Token.Position.Line, syntax.Token.Position.Column
		}
	}
	message, _, _ = strings.Cut(message, "\n")
	remedy := "mend the YAML here; nothing else of this file was looked at"
	switch {
	case strings.HasPrefix(strings.TrimLeft(p.file.line(line), " "), "\t"):
		remedy = "indent with spaces"
	case strings.Contains(message, "mapping value is not allowed"):
		remedy = "quote text that holds \": \""
	}
	p.problem(line, column, "%s: %s", message, remedy)
}

// document takes the one document of a file.
func (p *yamlReader) document(document *ast.File) *node {
	root := &node{shape: mapping, file: p.file, at: Position{File: p.file.name, Line: 1, Column: 1}}
	for _, d := range document.Docs {
		if d.Body == nil {
			continue
		}
		if body := p.node(d.Body, "", 0); body != nil && body.shape != nothing {
			root = body
		}
	}
	if p.failed {
		return nil
	}
	return root
}

func (p *yamlReader) node(from ast.Node, path string, depth int) *node {
	n := &node{file: p.file, path: path, at: p.at(from)}
	if depth > maxDepth {
		p.problem(n.at.Line, n.at.Column, "the nesting is deeper than %d: nothing in this file needs that", maxDepth)
		return n
	}
	switch from := from.(type) {
	case *ast.AnchorNode:
		return p.anchor(from, path, depth)
	case *ast.AliasNode:
		return p.alias(from, n)
	case *ast.NullNode:
		n.shape = nothing
	case *ast.StringNode:
		n.shape, n.value = str, from.Value
	case *ast.LiteralNode:
		n.shape, n.value = str, from.Value.Value
	case *ast.BoolNode:
		n.shape, n.value = boolean, strings.ToLower(from.Token.Value)
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		n.shape, n.value = number, from.GetToken().Value
	case *ast.SequenceNode:
		n.shape = list
		for i, item := range from.Values {
			n.items = append(n.items, p.node(item, fmt.Sprintf("%s[%d]", path, i), depth+1))
		}
	case *ast.MappingNode:
		n.shape = mapping
		p.entries(n, from.Values, depth)
	case *ast.MappingValueNode:
		n.shape = mapping
		p.entries(n, []*ast.MappingValueNode{from}, depth)
	default:
		p.problem(n.at.Line, n.at.Column, "%s is not taken here: write a plain value", quoted(from.GetToken().Value))
	}
	if strings.ContainsRune(n.value, 0) {
		p.problem(n.at.Line, n.at.Column, "the text holds a NUL character, which no program can be given: take it out")
	}
	return n
}

func (p *yamlReader) entries(n *node, values []*ast.MappingValueNode, depth int) {
	var merged []*node
	for _, value := range values {
		if _, merge := value.Key.(*ast.MergeKeyNode); merge {
			merged = append(merged, p.node(value.Value, n.path, depth+1))
			continue
		}
		key := p.node(value.Key, n.path, depth+1)
		if key.shape == list || key.shape == mapping {
			p.problem(key.at.Line, key.at.Column, "%s is not a key: write a word", key.shown())
			continue
		}
		key.path = below(n.path, key.value)
		n.entries = append(n.entries, entry{key, p.node(value.Value, key.path, depth+1)})
	}
	p.merge(n, merged)
}

// at is where a node begins. A block mapping's own token is its first colon.
func (p *yamlReader) at(from ast.Node) Position {
	switch m := from.(type) {
	case *ast.MappingNode:
		if !m.IsFlowStyle && len(m.Values) > 0 {
			return p.at(m.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return p.at(m.Key)
	}
	at := Position{File: p.file.name, Line: 1, Column: 1}
	if t := from.GetToken(); t != nil && t.Position != nil {
		at.Line, at.Column = max(t.Position.Line, 1), max(t.Position.Column, 1)
	}
	return at
}
