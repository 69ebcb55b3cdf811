package portable

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
)

// large is a result with something long in each place that may have it.
func large() *api.Result {
	text := func(s string) string { return strings.Repeat(s, 1+2*pieceBytes/len(s)) }
	number := json.RawMessage(`"` + text("9") + `"`)
	r := &api.Result{CallID: "x", Structured: number, Content: []api.Content{
		{Type: "text", Text: text("ä\n")}, {Type: "text", Text: "short", LeftOutBytes: 9}, {Type: "json", JSON: number}, {Type: "image", Data: bytes.Repeat([]byte{0, 255}, pieceBytes)},
	}}
	r.Output.Stdout = api.StreamOutput{Head: text("head\x00"), Tail: text("tail"), SeenBytes: 7}
	r.Output.Stderr = api.StreamOutput{Head: text("<&>"), Tail: "short"}
	return r
}

func join(t *testing.T, j *Joiner, r *api.Result) *api.Result {
	t.Helper()
	for p := range Pieces(r) {
		if len(p.Bytes) > pieceBytes || !j.Add(p, 1<<30, 1<<30) {
			t.Fatalf("a piece of %d bytes", len(p.Bytes))
		}
	}
	got, err := j.Result(MaxElements)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// A result comes as it is, and its sender keeps its own. What is long is in no JSON.
func TestPieces(t *testing.T) {
	r, want := large(), large()
	var j Joiner
	if got := join(t, &j, r); !reflect.DeepEqual(got, want) {
		t.Error("another result has come")
	}
	if !reflect.DeepEqual(r, want) {
		t.Error("the sender's result has changed")
	}
	for p := range Pieces(r) {
		if !p.Long && len(p.Bytes) > 2*longBytes {
			t.Errorf("%d bytes of JSON", len(p.Bytes))
		}
	}
	if got := join(t, &j, &api.Result{CallID: "y"}); got.CallID != "y" || got.Structured != nil {
		t.Errorf("%+v", got)
	}
	many := &api.Result{Content: make([]api.Content, pieceBytes/8)}
	if got := join(t, &j, many); !reflect.DeepEqual(got.Content, many.Content) {
		t.Error("JSON of several pieces has not come whole")
	}
}

// Pieces that make no result are refused, and no more are held than may be.
func TestPiecesOfALiar(t *testing.T) {
	end := func(raw string) Piece { return Piece{Bytes: []byte(raw), Last: true} }
	for name, pieces := range map[string][]Piece{
		"no JSON":               {end("{")},
		"far too many contents": {end(`{"content":[{},{},{},{},{},{},{},{},{},{},{}]}`)},
		"no such place":         {{Long: true, Of: 5, Bytes: []byte("x")}, end(`{}`)},
		"far too many places":   {{Long: true, Of: 1<<32 - 1, Bytes: []byte("x")}, end(`{}`)},
		"a place that is taken": {{Long: true, Bytes: []byte("x")}, end(`{"output":{"stdout":{"head":"y"}}}`)},
		"not JSON where it is":  {{Long: true, Of: 4, Bytes: []byte("{")}, end(`{}`)},
	} {
		var j Joiner
		for _, p := range pieces {
			if !j.Add(p, 1000, 1000) {
				t.Errorf("%s: too much", name)
			}
		}
		if r, err := j.Result(10); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
	var j Joiner
	n := 0
	for ; j.Add(Piece{Long: true, Of: uint32(n)}, 10_000, 0); n++ { // empty ones count as well
	}
	if n > 1000 {
		t.Errorf("%d pieces", n)
	}
	j = Joiner{}
	if !j.Add(Piece{Bytes: make([]byte, 100)}, 10_000, 150) || j.Add(Piece{Bytes: make([]byte, 100)}, 10_000, 150) {
		t.Error("its JSON has no bound of its own")
	}
}

// Lists are counted wherever a result has them, and not in what stays JSON there.
func TestElements(t *testing.T) {
	for raw, want := range map[string]int{
		`{"content":[{},null , {"text":"a,b","json":[1,2,3],"block":true}]}`:      3,
		`{"structured":[[1,2],{"x":[3,4]}],"meta":{"y":[5,6]},"rounds":[{},{}]}`:  2,
		`{"toolError":{"rpc":[1,2]},"warnings":["\\",",\"[[[","]"],"files":null}`: 3,
		`{"network":{"flows":[{},{}],"refused":[{},{}]}}`:                         4,
		`{"content":[{"json":[1,2]},{"extra":{"z":[1]},"text":"\"json"},{}]}`:     3,
		`{"Json":[1,2]}`:           2,
		`{"x":"json","y":[1,2,3]}`: 3,
		`]],}"`:                    0,
		`["\`:                      1,
		``:                         0,
	} {
		if got := elements([]byte(raw)); got != want {
			t.Errorf("%s: %d, want %d", raw, got, want)
		}
	}
}
