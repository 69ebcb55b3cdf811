package verbatim

//lint:file-ignore SA1019 sampling leaves MCP with version 2026-07-28: it is passed on for those that have it

import (
	"encoding/json"
	"fmt"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
)

// Sampling is a request for the client's model that is written as its server has written it.
// The text comes in its _meta, behind Key, to where it is sent.
type Sampling struct {
	*mcpsdk.CreateMessageWithToolsParams
	Raw json.RawMessage
}

func (s *Sampling) MarshalJSON() ([]byte, error) { return s.Raw, nil }

// Inputs are what a request of 2026-07-28 is to come back with.
type Inputs struct {
	Requests mcpsdk.InputRequestMap
	Keys     []string // in the order in which the server asks
	State    string
}

// In has a result written with the requests in their order, which the SDK's map has not.
func (i *Inputs) In(result mcpsdk.Result) error {
	raw, err := json.Marshal(i.Requests)
	if err != nil {
		return fmt.Errorf("cannot write the question: %w", err)
	}
	fields := object.Of(raw)
	ordered := []byte("{")
	for n, key := range i.Keys {
		if n > 0 {
			ordered = append(ordered, ',')
		}
		name, _ := json.Marshal(key) // text always can be
		one := fields[key]
		if p, is := i.Requests[key].(*mcpsdk.CreateMessageWithToolsParams); is {
			one = object.With(one, "params", p.Meta[Key])
		}
		ordered = append(append(append(ordered, name...), ':'), one...)
	}
	result.SetMeta(map[string]any{Key: object.Fields{"inputRequests": append(ordered, '}')}})
	return nil
}
