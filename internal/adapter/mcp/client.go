package mcp

//lint:file-ignore SA1019 roots and logging leave MCP with version 2026-07-28, which few servers speak yet

import (
	"context"
	"encoding/json"
	"net/url"
	"path/filepath"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// newClient offers the server questions to a human, and roots if there are any.
// Sampling is not offered: a server that asks for it gets an error.
func (s *session) newClient(w *wire) *mcpsdk.Client {
	capabilities := &mcpsdk.ClientCapabilities{
		Elicitation: &mcpsdk.ElicitationCapabilities{Form: &mcpsdk.FormElicitationCapabilities{}},
	}
	if len(s.options.Roots) > 0 {
		capabilities.RootsV2 = &mcpsdk.RootCapabilities{}
	}
	client := mcpsdk.NewClient(&mcpsdk.Implementation{Name: "toolhost", Version: s.options.Version}, &mcpsdk.ClientOptions{
		Capabilities: capabilities,
		ElicitationHandler: func(ctx context.Context, request *mcpsdk.ElicitRequest) (*mcpsdk.ElicitResult, error) {
			return w.elicit(ctx, request.Params), nil
		},
	})
	for _, root := range s.options.Roots {
		uri := url.URL{Scheme: "file", Path: root}
		client.AddRoots(&mcpsdk.Root{URI: uri.String(), Name: filepath.Base(root)})
	}
	return client
}

const logLevel = "info"

// setLogLevel asks for the server's log, if it has one to give. Nothing depends
// on it.
func (s *session) setLogLevel(ctx context.Context) {
	if c := s.client.InitializeResult().Capabilities; c == nil || c.Logging == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.options.StartTimeout)
	defer cancel()
	_ = s.client.SetLoggingLevel(ctx, &mcpsdk.SetLoggingLevelParams{Level: logLevel})
}

// callParams ask for progress and, where the protocol has it so, for the log.
func callParams(tool string, arguments json.RawMessage, token string) *mcpsdk.CallToolParams {
	return &mcpsdk.CallToolParams{
		Meta: mcpsdk.Meta{"progressToken": token, mcpsdk.MetaKeyLogLevel: logLevel}, Name: tool, Arguments: arguments,
	}
}
