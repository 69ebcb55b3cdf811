// Package plugin is the SDK for tool authors. A tool is a Go function with a
// typed argument and a typed result; Serve runs one or several of them as a
// go-plugin child that a toolhost supervises:
//
//	func main() {
//		plugin.Serve(plugin.NewTool(plugin.Tool{Name: "search", ReadOnly: true}, search))
//	}
//
//	func search(ctx context.Context, in Query, out *plugin.Output) (Summary, error) { ... }
//
// The JSON Schemas of arguments and result come from the Go types (tags json
// and jsonschema, see github.com/google/jsonschema-go). ctx ends at the call's
// deadline, on cancel and on SIGTERM; context.Cause tells which. It has no
// Deadline to look at, since that moves while a human is asked. What was sent
// through Output by then is the call's partial result, and what the function
// returns within the grace period still counts in full.
package plugin

import _ "github.com/toolhost/toolhost/internal/prefault" // a tool is started for each call
