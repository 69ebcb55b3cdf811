package schema

import (
	"net/mail"
	"net/url"
	"time"
)

// ValidateAnswer is like Validate, for answers of people: it also checks the formats email,
// uri, date and date-time of strings, those of MCP's forms. Validate ignores formats, which
// JSON Schema defines as annotations.
func (s *Schema) ValidateAnswer(value any) error {
	if err := s.Validate(value); err != nil {
		return err
	}
	f := s.finder()
	f.formats = true
	err := f.broken(s.checked.root, value, "")
	if err == nil || s.finder().broken(s.checked.root, value, "") != nil { // the library has found that to be right
		return nil
	}
	return err
}

// format has the rule that only answers are held to.
func (f *finder) format(rules map[string]any, value any, where path) error {
	name, _ := rules["format"].(string)
	text, is := value.(string)
	known, checked := formats[name]
	if !f.formats || !is || !checked || known.fits(text) {
		return nil
	}
	return where.says("want %s (format), not %s", known.want, show(value))
}

var formats = map[string]struct {
	want string
	fits func(string) bool
}{
	"email": {"an email address, such as ada@example.com", func(text string) bool {
		at, err := mail.ParseAddress(text)
		return err == nil && at.Address == text
	}},
	"uri": {"a whole address, such as https://example.com/", func(text string) bool {
		u, err := url.Parse(text)
		return err == nil && u.Scheme != ""
	}},
	"date":      {"a date, such as 2026-07-28", isTime(time.DateOnly)},
	"date-time": {"a date and time, such as 2026-07-28T12:30:00Z", isTime(time.RFC3339)},
}

func isTime(layout string) func(string) bool {
	return func(text string) bool {
		_, err := time.Parse(layout, text)
		return err == nil
	}
}
