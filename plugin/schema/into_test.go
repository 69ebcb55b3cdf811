package schema

import (
	"encoding/json"
	"math/big"
	"net/netip"
	"strings"
	"testing"
	"time"
)

type inner struct {
	A    int               `json:"a"`
	When time.Time         `json:"when"`
	By   map[string]*inner `json:"by"`
}

type form struct{ text string }

func (f *form) UnmarshalJSON(raw []byte) error { return json.Unmarshal(raw, &f.text) }

type arguments struct {
	inner
	Nodes  []inner               `json:"nodes"`
	Bytes  []byte                `json:"bytes"`
	IP     netip.Addr            `json:"ip"`
	Dur    time.Duration         `json:"dur"`
	Quoted int64                 `json:"quoted,string"`
	Maybe  *uint16               `json:"maybe,string"`
	Float  float32               `json:"float"`
	Any    any                   `json:"any"`
	Pair   [2]bool               `json:"pair"`
	Form   form                  `json:"form"`
	Big    *big.Int              `json:"big"`
	Keys   map[netip.Addr]string `json:"keys"`
	Skip   string                `json:"-"`
}

// An error names the place in the arguments, the range, and the value in short.
func TestDecodeNamesThePlace(t *testing.T) {
	for text, want := range map[string]string{
		`[]`:                            `want an object, not a list`,
		`{"a":"x"}`:                     `a: want a whole number in digits, from -9223372036854775808 to 9223372036854775807, not the string "x"`,
		`{"nodes":[{"a":1},{"a":1.5}]}`: `nodes[1].a: want a whole number in digits, from -9223372036854775808 to 9223372036854775807, not 1.5`,
		`{"nodes":[{"by":{"k v":{"when":"notadate"}}}]}`: `nodes[0].by["k v"].when: want a time such as 2006-01-02T15:04:05Z (RFC 3339), not the string "notadate"`,
		`{"When":5}`:                        `When: want a time such as 2006-01-02T15:04:05Z (RFC 3339), not 5`,
		`{"bytes":"?"}`:                     `bytes: want bytes in base64, not the string "?"`,
		`{"ip":"here"}`:                     `ip: the string "here" does not do: ParseAddr("here"): unable to parse IP`,
		`{"dur":99999999999999999999}`:      `dur: want a whole number in digits, from -9223372036854775808 to 9223372036854775807, not 99999999999999999999`,
		`{"quoted":"99999999999999999999"}`: `quoted: want a whole number in digits, from -9223372036854775808 to 9223372036854775807, not 99999999999999999999`,
		`{"maybe":"-1"}`:                    `maybe: want a whole number in digits, from 0 to 65535, not -1`,
		`{"quoted":5}`:                      `quoted: want a string, not 5`,
		`{"quoted":"five"}`:                 `quoted: want a whole number in digits, from -9223372036854775808 to 9223372036854775807, not the string "five"`,
		`{"float":1e39}`:                    `float: want a number from -3.403e+38 to 3.403e+38, not 1e39`,
		`{"any":[{"x":1e400}]}`:             `any[0].x: want a number from -1.798e+308 to 1.798e+308, not 1e400`,
		`{"pair":[true,0]}`:                 `pair[1]: want true or false, not 0`,
		`{"form":[]}`:                       `form: want a string, not a list`,
		`{"big":1.5}`:                       `big: 1.5 does not do: math/big: cannot unmarshal "1.5" into a *big.Int`,
		`{"keys":{"here":""}}`:              `keys: an object does not do: ParseAddr("here"): unable to parse IP`,
		`{"a":`:                             `no valid JSON at byte 5: unexpected end of JSON input`,
	} {
		var into arguments
		if err := Decode([]byte(text), &into); err == nil || err.Error() != want {
			t.Errorf("%s:\n%v, want\n%s", text, err, want)
		}
	}
	var into arguments
	if err := Decode([]byte(`{"a":1,"quoted":"5","maybe":null,"-":[],"skip":[],"unknown":0}`), &into); err != nil {
		t.Error(err)
	}
}

func TestDecodeErrorsAreShort(t *testing.T) {
	long := strings.Repeat("x", 600_000)
	for _, text := range []string{`{"a":"` + long + `"}`, `{"ip":"` + long + `"}`, `{"by":{"` + long + `":5}}`, `{"dur":` + strings.Repeat("9", 600_000) + `}`, `{"big":"` + long + `"}`} {
		var into arguments
		if err := Decode([]byte(text), &into); err == nil || len(err.Error()) > 600 {
			t.Errorf("%.20s: %.300v", text, err)
		}
		if err := DecodeError(json.Unmarshal([]byte(text), &into)); strings.HasPrefix(text, `{"dur"`) && len(err.Error()) > 600 {
			t.Errorf("%.20s: %.300v", text, err)
		}
	}
}
