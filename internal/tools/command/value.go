package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/toolhost/toolhost/internal/lazy"
	"github.com/toolhost/toolhost/plugin/wirejson"
)

// values are the texts of the parameters that have a value: one, or an array's
// items.
type values map[string][]string

var (
	errNUL     = errors.New("contains a NUL character, which no command line can carry: leave it out")
	plainForm  = lazy.Regexp(`^-?(0|[1-9][0-9]*)$`)
	numberForm = lazy.Regexp(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
)

// texts checks an argument and returns what the command is to see of it. The
// errors go on from the parameter's name.
func (p *param) texts(raw json.RawMessage) ([]string, error) {
	if !p.array {
		text, err := p.scalar(raw)
		return []string{text}, err
	}
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil || items == nil {
		return nil, fmt.Errorf("must be an array, not %s", shown(string(raw)))
	}
	texts := make([]string, len(items))
	for i, item := range items {
		text, err := p.scalar(item)
		if err != nil {
			return nil, fmt.Errorf("item %d %w", i, err)
		}
		texts[i] = text
	}
	return texts, nil
}

func (p *param) scalar(raw json.RawMessage) (string, error) {
	raw = bytes.TrimSpace(raw)
	text, err := textOf(p.kind, raw)
	if err != nil {
		return "", err
	}
	if strings.IndexByte(text, 0) >= 0 && !p.piped {
		return "", errNUL
	}
	if len(p.Enum) > 0 && !p.listed(text) {
		return "", fmt.Errorf("must be one of %s, not %s", joined(p.Enum), shown(string(raw)))
	}
	if p.pattern != nil && !p.pattern.MatchString(text) {
		return "", fmt.Errorf("must match %s, but is %s", shown(p.Pattern), shown(text))
	}
	return text, p.inBounds(text)
}

// textOf is what a JSON value of a type looks like in a command line.
func textOf(kind string, raw json.RawMessage) (string, error) {
	switch kind {
	case TypeString:
		var text string
		if !bytes.HasPrefix(raw, []byte(`"`)) || json.Unmarshal(raw, &text) != nil {
			return "", fmt.Errorf("must be a string, not %s", shown(string(raw)))
		}
		return text, nil
	case TypeBoolean:
		if text := string(raw); text == "true" || text == "false" {
			return text, nil
		}
		return "", fmt.Errorf("must be true or false, not %s", shown(string(raw)))
	}
	if len(raw) > wirejson.MaxNumberBytes { // comparing costs time
		return "", fmt.Errorf("has %d characters, a number may have %d", len(raw), wirejson.MaxNumberBytes)
	}
	if kind == TypeInteger && !plainForm().Match(raw) {
		return "", fmt.Errorf("must be a whole number in plain digits, not %s", shown(string(raw)))
	}
	if !numberForm().Match(raw) {
		return "", fmt.Errorf("must be a number, not %s", shown(string(raw)))
	}
	return string(raw), nil
}

// listed says whether a text is that of a value in Enum.
func (p *param) listed(text string) bool {
	for _, raw := range p.Enum {
		allowed, err := textOf(p.kind, bytes.TrimSpace(raw))
		if err == nil && (allowed == text || p.numeric() && sameNumber(allowed, text)) {
			return true
		}
	}
	return false
}

func (p *param) numeric() bool { return p.kind == TypeInteger || p.kind == TypeNumber }

func (p *param) inBounds(text string) error {
	if !p.numeric() || p.Min == nil && p.Max == nil {
		return nil
	}
	number, err := numberOf(text)
	switch {
	case err != nil:
		return err
	case p.Min != nil && number.Cmp(boundOf(*p.Min)) < 0:
		return fmt.Errorf("must be at least %v, not %s", *p.Min, shown(text))
	case p.Max != nil && number.Cmp(boundOf(*p.Max)) > 0:
		return fmt.Errorf("must be at most %v, not %s", *p.Max, shown(text))
	}
	return nil
}

// boundOf is a bound as it was written: 0.1 is not the float64 that is nearest to it.
func boundOf(bound float64) *big.Float {
	number, _ := numberOf(strconv.FormatFloat(bound, 'g', -1, 64)) // which is in range
	return number
}

func sameNumber(a, b string) bool {
	x, errX := numberOf(a)
	y, errY := numberOf(b)
	return errX == nil && errY == nil && x.Cmp(y) == 0
}

// numberOf keeps every digit: a float64 would let a big integer past a bound. All numbers
// have the same precision, so that 0.1 and 0.10 are the same.
func numberOf(text string) (*big.Float, error) {
	number, _, err := big.ParseFloat(text, 10, 4*wirejson.MaxNumberBytes+64, big.ToNearestEven)
	if err != nil {
		return nil, fmt.Errorf("is out of range: %s", shown(text))
	}
	return number, nil
}

func joined(list []json.RawMessage) string {
	return string(bytes.Join(func() (parts [][]byte) {
		for _, raw := range list {
			parts = append(parts, raw)
		}
		return parts
	}(), []byte(", ")))
}
