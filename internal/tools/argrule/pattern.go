package argrule

import (
	"net/url"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxPatternBytes and maxStars bound a pattern, and maxTextBytes what is compared
// with it: whatever these are, that takes less than a second.
const (
	maxPatternBytes = 1024
	maxStars        = 16
	maxTextBytes    = 256 << 10
)

// Pattern is what an argument is compared with: a text in which ? is any one
// character, * any number of them, and ** as * where that stops at a slash,
// which it does in a pattern that has one. A pattern with a slash is a path or,
// with ://, a URL: they are compared without detours. A ! before it means not.
type Pattern struct {
	text string
	not  bool
	form form
	glob *regexp.Regexp
}

// form is what a pattern is for.
type form int

const (
	formText form = iota
	formPath      // from the root, or with ** before it from anywhere
	formRelative
	formURL
)

// Parse reads a pattern. Where it cannot, it says why in a phrase that goes on
// from the pattern.
func Parse(pattern string) (p Pattern, wrong string) {
	rest, not := strings.CutPrefix(pattern, "!")
	switch {
	case rest == "":
		return p, "is empty: write what the argument must be, such as /srv/**"
	case len(rest) > maxPatternBytes:
		return p, "has more than 1024 bytes: shorten it"
	case strings.Count(strings.ReplaceAll(rest, "**", "*"), "*") > maxStars:
		return p, "has more than 16 stars: write several patterns"
	case !utf8.ValidString(rest):
		return p, "is not UTF-8"
	case strings.ContainsAny(rest, `[]{}\`):
		return p, `has one of [ ] { } \: patterns have *, ** and ?; several can stand in a list`
	}
	p = Pattern{text: pattern, not: not, form: formOf(rest)}
	if p.form != formText && rest != "/" && strings.HasSuffix(rest, "/") {
		return p, "ends in a slash: write " + rest + "** for all below it"
	}
	if (p.form == formPath || p.form == formRelative) && path.Clean(rest) != rest {
		return p, "is not a plain path: write " + path.Clean(rest)
	}
	p.glob = compile(rest, p.form)
	return p, ""
}

func formOf(pattern string) form {
	switch {
	case strings.Contains(pattern, "://"):
		return formURL
	case strings.HasPrefix(pattern, "/"), strings.HasPrefix(pattern, "**/"):
		return formPath
	case strings.Contains(pattern, "/"):
		return formRelative
	}
	return formText
}

// compile makes a pattern a regular expression of a whole text.
func compile(pattern string, f form) *regexp.Regexp {
	star := "[^/]*"
	if f == formText {
		star = ".*"
	}
	all := ""
	if below, ok := strings.CutSuffix(pattern, "/**"); ok && f != formText {
		pattern, all = below, "(?:/.*)?"
	}
	text := regexp.QuoteMeta(pattern)
	text = strings.NewReplacer(`\*\*/`, "(?:.*/)?", `\*\*`, ".*", `\*`, star, `\?`, strings.TrimSuffix(star, "*")).Replace(text)
	return regexp.MustCompile(`(?s)\A` + text + all + `\z`)
}

// match says whether a text fits: surely, whatever the tool makes of it, and
// possibly, in one of the readings of it.
func (p Pattern) match(text string, dirs []string) (surely, possibly bool) {
	var readings []string
	if len(text) > maxTextBytes {
		return false, true
	}
	switch p.form {
	case formText:
		readings = plain(text)
	case formURL:
		readings = urls(text)
	default:
		readings = paths(text, dirs)
	}
	if len(readings) == 0 {
		return false, true
	}
	surely = true
	for _, one := range readings {
		fits := p.fits(one, dirs)
		surely, possibly = surely && fits, possibly || fits
	}
	return surely, possibly
}

func (p Pattern) fits(text string, dirs []string) bool {
	if p.form != formRelative {
		return p.glob.MatchString(text)
	}
	for _, dir := range dirs {
		if rest, below := strings.CutPrefix(text, strings.TrimSuffix(dir, "/")+"/"); below && p.glob.MatchString(rest) {
			return true
		}
	}
	return false
}

// paths are what a text can mean as a path, from the root: one that is relative
// begins in any of dirs. The list is empty if the text cannot be judged.
func paths(text string, dirs []string) (list []string) {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(strings.ToLower(text), "file:") {
		u, err := url.Parse(text)
		if err != nil || u.Path == "" || u.Host != "" && u.Host != "localhost" {
			return nil
		}
		text = u.Path
	}
	if strings.HasPrefix(text, "/") {
		return []string{path.Clean(text)}
	}
	if strings.HasPrefix(text, "~") || strings.HasPrefix(text, "$") {
		return nil // who knows which folder
	}
	for _, dir := range dirs {
		list = append(list, path.Join(dir, text))
	}
	return list
}

// plain are a text, and what is left of it for those who care for neither space
// around it nor detours in it.
func plain(text string) []string {
	short := strings.TrimSpace(text)
	if strings.Contains(short, "/") && !strings.Contains(short, "://") {
		return []string{text, short, path.Clean(short)}
	}
	return []string{text, short}
}

// urls are what a text can mean as a URL, without the other ways to write it.
func urls(text string) (list []string) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.Scheme == "" || u.Host == "" {
		return nil
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if port := u.Port(); port != "" && port != standardPort[u.Scheme] {
		host += ":" + port
	}
	for _, one := range []string{u.Path, u.EscapedPath()} {
		whole := path.Clean("/" + one)
		if u.RawQuery != "" {
			whole += "?" + u.RawQuery
		}
		list = append(list, u.Scheme+"://"+host+strings.TrimSuffix(whole, "/"))
	}
	return list
}

var standardPort = map[string]string{"http": "80", "https": "443"}
