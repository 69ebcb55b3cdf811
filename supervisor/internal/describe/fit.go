package describe

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toolhost/toolhost/internal/text"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/plugin/schema"
	"github.com/toolhost/toolhost/plugin/wirejson"
)

// Bounds of what a description says: all of it goes to each client with each list.
const (
	maxTitleBytes       = 1 << 10
	maxDescriptionBytes = 64 << 10
	maxFieldsBytes      = schema.MaxBytes
)

// fit leaves in a description no JSON but such as everybody can read, and no more of
// anything than a list can hold. Schemas are for schema.Parse to refuse. It says what
// it has left out.
func fit(response *pluginv1.DescribeResponse) (leftOut []string) {
	warn := func(format string, args ...any) { leftOut = append(leftOut, fmt.Sprintf(format, args...)) }
	response.Version = text.Begin(response.GetVersion(), maxTitleBytes)
	for _, tool := range response.GetTools() {
		fitTool(tool, warn)
	}
	if server := response.GetServer(); server != nil {
		fitServer(server, warn)
	}
	return leftOut
}

type warner func(format string, args ...any)

func fitTool(tool *pluginv1.ToolDescription, warn warner) {
	name := text.Begin(tool.GetName(), maxNameBytes)
	for _, of := range []struct {
		what string
		text *string
		most int
	}{{"title", &tool.Title, maxTitleBytes}, {"description", &tool.Description, maxDescriptionBytes}} {
		if size := len(*of.text); size > of.most {
			*of.text = text.Begin(*of.text, of.most)
			warn("tool %q: its %s is cut: it has %d bytes, over %d", name, of.what, size, of.most)
		}
	}
	for _, raw := range []*[]byte{&tool.InputSchema, &tool.OutputSchema} {
		if clean, err := wirejson.Clean(*raw); err == nil {
			*raw = clean
		}
	}
	if len(tool.Extra) == 0 {
		return
	}
	fits, err := fields(tool.Extra)
	if tool.Extra = fits; err != nil {
		warn("tool %q: further fields of its description are left out: %v", name, err)
	}
}

func fitServer(server *pluginv1.Server, warn warner) {
	server.Protocol = text.Begin(server.GetProtocol(), maxTitleBytes)
	for _, list := range []struct {
		of      string
		entries *[][]byte
	}{{"prompt", &server.Prompts}, {"resource", &server.Resources}, {"resource template", &server.Templates}} {
		kept := (*list.entries)[:0]
		for i, raw := range *list.entries {
			fits, err := fields(raw)
			if err != nil {
				warn("%s %d: fields of it are left out: %v", list.of, i+1, err)
			}
			if len(fits) > 0 {
				kept = append(kept, fits)
			}
		}
		*list.entries = kept
	}
	if len(server.Capabilities) == 0 {
		return
	}
	fits, err := fields(server.Capabilities)
	if server.Capabilities = fits; err != nil {
		warn("the server's capabilities: some are left out: %v", err)
	}
}

// fields are those of an object that fit.
func fields(raw []byte) (fits []byte, why error) {
	if len(raw) > maxFieldsBytes {
		return nil, fmt.Errorf("they have %d bytes, over %d", len(raw), maxFieldsBytes)
	}
	fits, why = wirejson.CleanFields(raw)
	var object map[string]json.RawMessage
	if why == nil && (json.Unmarshal(fits, &object) != nil || object == nil) {
		return nil, errors.New("they are not a JSON object")
	}
	return fits, why
}
