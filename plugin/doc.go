// Package plugin is the SDK for tool authors. A tool is a Go function with a
// typed argument and a typed result. Serve serves one or more tools in a
// go-plugin child process that toolhost supervises:
//
//	func main() {
//		plugin.Serve(plugin.NewTool(plugin.Tool{Name: "search", ReadOnly: true}, search))
//	}
//
//	func search(ctx context.Context, in Query, out *plugin.Output) (Summary, error) { ... }
//
// The JSON Schemas of arguments and result come from the Go types (tags json
// and jsonschema, see github.com/google/jsonschema-go). ctx ends at the call's
// deadline, on cancel and on SIGTERM; context.Cause tells them apart. Its method
// Deadline returns none, since the deadline moves while a human is asked. What
// was sent through Output before the end is the call's partial result. A result
// that the function returns within the grace period still counts in full.
package plugin

import _ "github.com/toolhost/toolhost/internal/prefault" // a tool is started for each call
