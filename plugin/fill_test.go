package plugin

import (
	"context"
	"encoding/json"
	"testing"
	"time"
)

type filledItem struct {
	Tags []string `json:"tags"`
}

type filledResult struct {
	Files   []string              `json:"files"`
	Items   []filledItem          `json:"items"`
	One     *filledItem           `json:"one"`
	ByName  map[string][]int      `json:"byName"`
	Deep    map[string]filledItem `json:"deep"`
	Pair    [2][]int              `json:"pair"`
	Left    []string              `json:"left,omitempty"`
	Zero    []string              `json:"zero,omitzero"`
	Raw     json.RawMessage       `json:"raw"`
	Bytes   []byte                `json:"bytes"`
	When    time.Time             `json:"when"`
	Any     any                   `json:"any"`
	Pointer *[]string             `json:"pointer"`
	filledItem
}

// A slice is an array in every schema, and a nil one an empty one in every result.
func TestNilSlicesAreEmptyArrays(t *testing.T) {
	result := filledResult{
		Items: []filledItem{{}, {Tags: []string{"a"}}}, One: &filledItem{}, ByName: map[string][]int{"x": nil}, Deep: map[string]filledItem{"y": {}},
	}
	raw, err := encode(result)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"files":[],"items":[{"tags":[]},{"tags":["a"]}],"one":{"tags":[]},"byName":{"x":[]},"deep":{"y":{"tags":[]}},"pair":[[],[]],` +
		`"raw":null,"bytes":null,"when":"0001-01-01T00:00:00Z","any":null,"pointer":null,"tags":[]}`
	if string(raw) != want {
		t.Errorf("got  %s\nwant %s", raw, want)
	}
	if result.Files != nil || result.Items[0].Tags != nil || result.One.Tags != nil || result.ByName["x"] != nil || result.Deep["y"].Tags != nil {
		t.Errorf("the tool's own value has changed: %+v", result)
	}
	if raw, err := encode([]string(nil)); err != nil || string(raw) != "[]" {
		t.Errorf("a nil slice is %s, %v", raw, err)
	}
	tool := NewTool(Tool{Name: "lists"}, func(_ context.Context, _ filledItem, _ *Output) (filledResult, error) { return filledResult{}, nil })
	for _, raw := range [][]byte{tool.Describe().GetInputSchema(), tool.Describe().GetOutputSchema()} {
		var schema struct {
			Properties map[string]any
		}
		if err := json.Unmarshal(raw, &schema); err != nil || typeOf(schema.Properties["tags"]) != "array" {
			t.Errorf("the schema of a slice is %v: %v", schema.Properties["tags"], err)
		}
	}
}

type filledBase struct {
	Names []string `json:"names"`
	*filledMore
}

type filledMore struct{ More []int }

// An unexported struct that is embedded by a pointer is written like others.
func TestNilSlicesBehindEmbeddedPointers(t *testing.T) {
	type out struct {
		*filledBase
		hidden *filledBase
	}
	result := out{&filledBase{filledMore: &filledMore{}}, &filledBase{}}
	if raw, err := encode(result); err != nil || string(raw) != `{"names":[],"More":[]}` {
		t.Errorf("%s, %v", raw, err)
	}
	if result.Names != nil || result.More != nil || result.hidden.Names != nil {
		t.Errorf("the tool's own value has changed: %+v", result)
	}
	if raw, err := encode(out{}); err != nil || string(raw) != `{}` {
		t.Errorf("%s, %v", raw, err)
	}
}

func typeOf(schema any) any {
	object, _ := schema.(map[string]any)
	return object["type"]
}

// What JSON passes over is not looked into: it may lead back to itself.
func TestFieldsOutsideJSONAreLeftAlone(t *testing.T) {
	type node struct {
		Next     *node
		Children []*node
	}
	type page struct {
		Links []string `json:"links"`
		Doc   *node    `json:"-"`
	}
	doc := &node{}
	doc.Next, doc.Children = doc, []*node{doc}
	if raw, err := encode(page{Doc: doc}); err != nil || string(raw) != `{"links":[]}` {
		t.Errorf("%s, %v", raw, err)
	}
}
