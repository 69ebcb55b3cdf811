package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"math/big"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/plugin/schema"
)

type level int

func (l level) MarshalText() ([]byte, error) { return []byte("L" + strings.Repeat("+", int(l))), nil }

func (l *level) UnmarshalText(text []byte) error {
	if !strings.HasPrefix(string(text), "L") {
		return errors.New("a level begins with L")
	}
	*l = level(len(text) - 1)
	return nil
}

type id [16]byte

func (i *id) UnmarshalText(text []byte) error { copy(i[:], text); return nil }
func (i *id) MarshalText() ([]byte, error)    { return i[:4], nil }

type pair struct{ left, right int }

func (p *pair) UnmarshalJSON(raw []byte) error {
	return json.Unmarshal(raw, &[]*int{&p.left, &p.right})
}
func (p pair) MarshalJSON() ([]byte, error) { return json.Marshal([]int{p.left, p.right}) }

type bytesOfMine []byte

type quotedFields struct {
	Count int64    `json:"count,string" jsonschema:"how many"`
	Share *float64 `json:"share,omitempty,string"`
	On    bool     `json:",string,omitempty"`
}

type oddForms struct {
	ID     id               `json:"id"`
	IP     net.IP           `json:"ip" jsonschema:"an address"`
	Addr   *netip.Addr      `json:"addr,omitempty"`
	Level  level            `json:"level"`
	Levels []level          `json:"levels"`
	By     map[string]level `json:"by"`
	Pair   pair             `json:"pair"`
	Maybe  *pair            `json:"maybe,omitempty"`
	Raw    *json.RawMessage `json:"raw,omitempty"`
	Mine   bytesOfMine      `json:"mine"`
	Number json.Number      `json:"number"`
	Big    *big.Int         `json:"big"`
	When   time.Time        `json:"when"`
	Deep   []quotedFields   `json:"deep"`
	quotedFields
}

func TestSchemasOfTypesWithFormsOfTheirOwn(t *testing.T) {
	d := NewTool(Tool{Name: "x"}, func(_ context.Context, in oddForms, _ *Output) (oddForms, error) { return in, nil }).Describe()
	const quotedProperties = `
		"count": {"type": "string", "pattern": "^-?(0|[1-9][0-9]*)$", "description": "how many"},
		"share": {"type": ["null", "string"], "pattern": "^-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?$"},
		"On": {"type": "string", "pattern": "^(true|false)$"}`
	want := `{
		"type": "object", "additionalProperties": false,
		"required": ["id", "ip", "level", "levels", "by", "pair", "mine", "number", "big", "when", "deep", "count"],
		"properties": {
			"id": {"type": "string"}, "ip": {"type": "string", "description": "an address"}, "addr": {"type": ["null", "string"]},
			"level": {"type": "string"}, "levels": {"type": "array", "items": {"type": "string"}},
			"by": {"type": ["null", "object"], "additionalProperties": {"type": "string"}},
			"pair": true, "maybe": true, "raw": true,
			"mine": {"type": ["null", "string"], "contentEncoding": "base64"},
			"number": {"type": "number"}, "big": {"type": ["null", "integer"]}, "when": {"type": "string", "format": "date-time"},
			"deep": {"type": "array", "items": {"type": "object", "additionalProperties": false, "required": ["count"], "properties": {` + quotedProperties + `}}},` +
		quotedProperties + `}}`
	sameJSON(t, d.GetInputSchema(), want)
	// encoding/json may or may not ask a method of the pointer alone.
	sameJSON(t, d.GetOutputSchema(), strings.Replace(want, `"id": {"type": "string"}`, `"id": true`, 1))
}

// What the schemas want is what encoding/json reads and writes.
func TestFormsOfTheirOwnGoThrough(t *testing.T) {
	x := NewTool(Tool{Name: "x"}, func(_ context.Context, in oddForms, _ *Output) (oddForms, error) { return in, nil })
	arguments := json.RawMessage(`{"id":"abcd","ip":"::1","addr":"10.0.0.1","level":"L++","levels":["L"],"by":{"a":"L+"},"pair":[1,2],"maybe":[3,4],"raw":{},
		"mine":"AQI=","number":5,"big":123456789012345678901234567890,"when":"2026-01-02T03:04:05Z","deep":[{"count":"-5","share":"1.5","On":"true"}],"count":"7"}`)
	satisfies(t, x.Describe().GetInputSchema(), arguments)
	got, err := x.Run(t.Context(), arguments, nil)
	if err != nil {
		t.Fatal(err)
	}
	satisfies(t, x.Describe().GetOutputSchema(), got)
	for _, part := range []string{`"ip":"::1"`, `"level":"L++"`, `"maybe":[3,4]`, `"mine":"AQI="`, `"count":"7"`} {
		if !strings.Contains(string(got), part) {
			t.Errorf("no %s in %s", part, got)
		}
	}
}

func satisfies(t *testing.T, rules, raw []byte) {
	t.Helper()
	resolved, err := schema.Parse(rules)
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := errors.Join(json.Unmarshal(raw, &value), resolved.Validate(value)); err != nil {
		t.Errorf("%s: %v", raw, err)
	}
}

// defaulted reads an object of its own fields, as arguments do that have defaults.
type defaulted struct {
	Times int `json:"times,omitempty"`
}

func (d *defaulted) UnmarshalJSON(raw []byte) error {
	type plain defaulted
	d.Times = 3
	return json.Unmarshal(raw, (*plain)(d))
}

func TestTheArgumentsThemselvesKeepTheirFields(t *testing.T) {
	x := NewTool(Tool{Name: "x"}, func(_ context.Context, in defaulted, _ *Output) (pair, error) { return pair{in.Times, 0}, nil })
	sameJSON(t, x.Describe().GetInputSchema(), `{"type":"object","additionalProperties":false,"properties":{"times":{"type":"integer"}}}`)
	sameJSON(t, x.Describe().GetOutputSchema(), `true`)
	if got, err := x.Run(t.Context(), json.RawMessage(`{}`), nil); err != nil || string(got) != `[3,0]` {
		t.Errorf("%s, %v", got, err)
	}
}
