package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

// Phrase is wording that readers stumble over, and what to write instead.
type Phrase struct {
	pattern *regexp.Regexp
	Instead string
}

// phrases are matched against text with its line breaks folded to spaces.
var phrases = []Phrase{
	{regexp.MustCompile(`(?i)\b(is|are|was|were) none\b`), `"must be one of", "is not a ...", "there are no ...", "or nil", "0 means unlimited"`},
	{regexp.MustCompile(`(?i)\b(is|are) no \w`), `"is not a ...", "there is no ..."`},
	{regexp.MustCompile(`(?i)\bwhoever\b`), `"the caller", "anyone who"`},
	{regexp.MustCompile(`(?i)\bwhat is\b[^.;:?]*\bis\b`), `name the thing`},
	{regexp.MustCompile(`(?i)\bof which\b`), `"whose", or a sentence of its own`},
	{regexp.MustCompile(`(?i)\b(tells?|told|telling) of\b`), `"reports", "describes", "says"`},
	{regexp.MustCompile(`(?i)\bnone of them (is|are)\b`), `"nothing", "no ... is"`},
	{regexp.MustCompile(`(?i)\bthat there is not\b`), `"does not exist", "not found"`},
}

// private are words for things that the field has a name for, and that name. They are looked for in the names of declarations.
var private = map[string]string{
	"hurry": "curtail, reclaim, boost", "hurried": "curtailed, boosted", "calm": "restore", "veil": "mask", "veiled": "masked",
	"doom": "kill", "doomed": "killed", "doomer": "killer", "bury": "reap", "buried": "reaped", "furnish": "mount", "shelf": "cache", "wards": "children",
	"kit": "host", "leg": "connection", "elsewhere": "fallback, remote, others", "promise": "schema, reserve", "promises": "has", "promised": "reserved",
}

// word is a part of a name: openFile has two.
var word = regexp.MustCompile(`[A-Z]?[a-z]+`)

// proper is good English that looks like one of the phrases.
var proper = regexp.MustCompile(`(?i)\bthere (is|are|was|were) no \w|\b(is|are) no (longer|more than|less than|fewer than|later than|earlier than)\b|\b(each|some|all|most|both|many|first|last|one|either|neither|[0-9]+) of which\b`)

// Finding is a phrase in a user-visible string or in a doc comment.
type Finding struct {
	File    string // from the module's root, with slashes
	Line    int
	Text    string // the phrase with a few words around it
	Instead string
}

func (f Finding) String() string {
	return fmt.Sprintf("%s:%d: %s: write %s", f.File, f.Line, f.Text, f.Instead)
}

// Words returns the phrases in a file's string literals and doc comments, and the private words in its names.
func Words(name string, set *token.FileSet, file *ast.File) (findings []Finding) {
	report := func(at token.Pos, text string) {
		for _, f := range wording(text) {
			f.File, f.Line = name, set.Position(at).Line
			findings = append(findings, f)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if doc := docOf(n); doc != nil {
			report(doc.Pos(), doc.Text())
		}
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			text, _ := strconv.Unquote(literal.Value) // the parser has checked it
			report(literal.Pos(), text)
		}
		for _, id := range declared(n) {
			for _, part := range word.FindAllString(id.Name, -1) {
				if instead := private[strings.ToLower(part)]; instead != "" {
					findings = append(findings, Finding{name, set.Position(id.Pos()).Line, id.Name, instead})
				}
			}
		}
		return true
	})
	return findings
}

// declared are the names that a declaration gives.
func declared(n ast.Node) []*ast.Ident {
	switch n := n.(type) {
	case *ast.FuncDecl:
		return []*ast.Ident{n.Name}
	case *ast.TypeSpec:
		return []*ast.Ident{n.Name}
	case *ast.ValueSpec:
		return n.Names
	case *ast.Field:
		return n.Names
	}
	return nil
}

// docOf returns a declaration's or field's comment.
func docOf(n ast.Node) *ast.CommentGroup {
	switch n := n.(type) {
	case *ast.File:
		return n.Doc
	case *ast.GenDecl:
		return n.Doc
	case *ast.FuncDecl:
		return n.Doc
	case *ast.TypeSpec:
		return n.Doc
	case *ast.ValueSpec:
		return n.Doc
	case *ast.Field:
		return n.Doc
	}
	return nil
}

// wording returns the phrases in text, without their place.
func wording(text string) (findings []Finding) {
	text = proper.ReplaceAllStringFunc(strings.Join(strings.Fields(text), " "), func(good string) string {
		return strings.Repeat("_", len(good))
	})
	for _, p := range phrases {
		for _, at := range p.pattern.FindAllStringIndex(text, -1) {
			findings = append(findings, Finding{Text: around(text, at[0], at[1]), Instead: p.Instead})
		}
	}
	return findings
}

// around cuts text to the words from start to end and some on either side.
func around(text string, start, end int) string {
	const beside = 40
	from, to := max(0, start-beside), min(len(text), end+beside)
	return strings.ToValidUTF8(text[from:to], "")
}
