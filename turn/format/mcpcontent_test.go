package format

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/toolhost/toolhost/api"
)

// A program that writes MCP itself shows the model what Results does.
func TestMCPContent(t *testing.T) {
	for name, result := range resultCases {
		raw, err := mcp{}.Results([]Call{{ID: "1", Tool: "search"}}, []*api.Result{result()})
		if err != nil {
			t.Fatal(err)
		}
		var written []struct {
			Content []struct {
				Type, Text, MIMEType, URI, Name string
				Data                            []byte
				Resource                        struct {
					URI, MIMEType string
					Blob          []byte
				}
			}
		}
		if err := json.Unmarshal(raw, &written); err != nil {
			t.Fatal(err)
		}
		var want []MCPBlock
		for _, c := range written[0].Content {
			b := MCPBlock{c.Type, c.Text, c.MIMEType, c.URI, c.Name, c.Data}
			if c.Type == "resource" {
				b.MIMEType, b.URI, b.Data = c.Resource.MIMEType, c.Resource.URI, c.Resource.Blob
			}
			want = append(want, b)
		}
		if got := MCPContent(result()); len(got) == 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}
