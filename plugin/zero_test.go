package plugin

import (
	"context"
	"encoding"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"
)

type (
	kind string
	tags []string
	node struct {
		Name string         `json:"name"`
		By   map[string]int `json:"by"`
	}
	// What follows has fields that Go and encoding/json see differently.
	userID struct {
		ID int `json:"user"`
	}
	orderID struct {
		ID string `json:"order"`
	}
	ambiguous struct {
		userID
		orderID
	}
	shadowed struct {
		Pages
		From string `json:"start"`
	}
	overridden struct {
		To string `json:"to"`
		Pages
	}
	tagged struct {
		named
		plain
	}
	named struct {
		Number int `json:"Text"`
	}
	plain struct{ Text string }
)

// resultOf holds a value to the schema that its type gets.
func resultOf[T any](value T) func(*testing.T) {
	return func(t *testing.T) {
		x := NewTool(Tool{Name: "x"}, func(context.Context, map[string]any, *Output) (T, error) { return value, nil })
		got, err := x.Run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		satisfies(t, x.Describe().GetOutputSchema(), got)
	}
}

// field is a type's value as a part of others.
type field[T any] struct {
	Plain    T            `json:"plain"`
	Omitted  T            `json:"omitted,omitempty"`
	OmitZero T            `json:"omitzero,omitzero"`
	Pointer  *T           `json:"pointer"`
	Second   **T          `json:"second"`
	List     []T          `json:"list"`
	Array    [1]T         `json:"array"`
	Map      map[string]T `json:"map"`
}

func zeroOf[T any]() func(*testing.T) {
	return func(t *testing.T) {
		var zero T
		resultOf(zero)(t)
		resultOf(&zero)(t)
		resultOf(field[T]{})(t)
		full := field[T]{Pointer: &zero, List: []T{zero}, Map: map[string]T{"": zero}}
		full.Second = &full.Pointer
		resultOf(full)(t)
		resultOf(&full)(t)
	}
}

// What a Go type marshals to satisfies the schema that is inferred of it.
func TestZeroValuesSatisfyTheirSchemas(t *testing.T) {
	for i, test := range []func(*testing.T){
		zeroOf[bool](), zeroOf[int](), zeroOf[int8](), zeroOf[uint64](), zeroOf[uintptr](), zeroOf[float32](), zeroOf[float64](), zeroOf[string](), zeroOf[kind](),
		zeroOf[[]string](), zeroOf[tags](), zeroOf[[2]int](), zeroOf[[2][]int](), zeroOf[[]byte](), zeroOf[[4]byte](), zeroOf[bytesOfMine](),
		zeroOf[map[string]int](), zeroOf[map[string]any](), zeroOf[map[kind][]map[string]int](), zeroOf[map[netip.Addr]bool](), zeroOf[http](),
		zeroOf[any](), zeroOf[fmt.Stringer](), zeroOf[encoding.TextMarshaler](), zeroOf[json.Marshaler](),
		zeroOf[json.RawMessage](), zeroOf[json.Number](), zeroOf[time.Time](), zeroOf[time.Duration](), zeroOf[slog.Level](),
		zeroOf[big.Int](), zeroOf[big.Float](), zeroOf[big.Rat](), zeroOf[net.IP](), zeroOf[netip.Addr](), zeroOf[url.URL](),
		zeroOf[level](), zeroOf[id](), zeroOf[pair](), zeroOf[quotedFields](), zeroOf[struct{}](), zeroOf[node](),
		zeroOf[struct{ *Pages }](), zeroOf[struct{ query }](), zeroOf[ambiguous](), zeroOf[shadowed](), zeroOf[overridden](), zeroOf[tagged](), zeroOf[quotedZeros](),
	} {
		t.Run(fmt.Sprint(i), test)
	}
}

type http map[string][]string

type quotedZeros struct {
	Int    int           `json:"int,string"`
	Uint   *uint8        `json:"uint,string"`
	Float  float32       `json:"float,string"`
	Bool   bool          `json:"bool,string"`
	Text   string        `json:"text,string"`
	Number json.Number   `json:"number,string"`
	Maybe  *json.Number  `json:"maybe,string"`
	Time   time.Duration `json:"time,string"`
}

// A nil map is an empty object where it is all of the result, which is an object
// for hosts and clients; arguments take null for their maps, too.
func TestNilMaps(t *testing.T) {
	x := NewTool(Tool{Name: "x"}, func(_ context.Context, in node, _ *Output) (map[string]int, error) { return in.By, nil })
	sameJSON(t, x.Describe().GetOutputSchema(), `{"type":"object","additionalProperties":{"type":"integer"}}`)
	arguments := json.RawMessage(`{"name":"","by":null}`)
	satisfies(t, x.Describe().GetInputSchema(), arguments)
	if got, err := x.Run(t.Context(), arguments, nil); err != nil || string(got) != `{}` {
		t.Errorf("%s, %v", got, err)
	}
	if in := NewTool(Tool{Name: "x"}, func(context.Context, map[string]int, *Output) (None, error) { return None{}, nil }).Describe(); !strings.Contains(string(in.GetInputSchema()), `"type":"object"`) {
		t.Errorf("arguments: %s", in.GetInputSchema())
	}
}

type tree struct {
	Kids []struct {
		Of *tree `json:"of"`
	} `json:"kids"`
}

// ofItself knows what goes into its interface.
type ofItself struct{ In fmt.Stringer }

func (*ofItself) UnmarshalJSON([]byte) error { return nil }

// A type twice side by side is in no cycle; interfaces have a schema where something
// can go in or out.
func TestSchemasOfTypesLikeThose(t *testing.T) {
	type pair struct{ A, B *query }
	for _, make := range []func(){
		newToolOf[pair, pair](), newToolOf[struct{ A any }, struct{ B fmt.Stringer }](), newToolOf[ofItself, None](),
	} {
		if text := panicked(make); text != "" {
			t.Error(text)
		}
	}
}

func TestNoSchemaNamesTheField(t *testing.T) {
	type inner struct {
		Counts map[int]string `json:"counts"`
	}
	for name, test := range map[string]struct {
		make func()
		want string
	}{
		"keys":           {newToolOf[struct{ Nodes []map[string]inner }, None](), "field Nodes[][].counts: map[int]string has keys of type int: want strings"},
		"result":         {newToolOf[query, inner](), "result type plugin.inner: field counts: map[int]string"},
		"embedded":       {newToolOf[struct{ inner }, None](), "field counts: map[int]string"},
		"the whole":      {newToolOf[map[int]string, None](), "argument type map[int]string: map[int]string has keys"},
		"recursive":      {newToolOf[tree, None](), "argument type plugin.tree: field kids[].of: plugin.tree contains itself, for which no schema is made: give the schema by hand with NewRawTool"},
		"in a result":    {newToolOf[query, struct{ Top []tree }](), "field Top[].kids[].of: plugin.tree contains itself"},
		"interface":      {newToolOf[struct{ E fmt.Stringer }, None](), "field E: fmt.Stringer is an interface with methods, which no JSON can be read into: want a type without, or give the schema by hand with NewRawTool"},
		"error":          {newToolOf[struct{ In []error }, None](), "field In[]: error is an interface with methods"},
		"error given":    {newToolOf[query, struct{ Err error }](), "field Err: error is written as {}, without its text: want a string, or give the schema by hand with NewRawTool"},
		"no form at all": {newToolOf[struct{ In []chan int }, None](), "field In[]: chan int has no form in JSON"},
	} {
		if text := panicked(test.make); !strings.Contains(text, test.want) {
			t.Errorf("%s: panic %q, want %q", name, text, test.want)
		}
	}
}
