// Package format reads the tool calls that a model asked for and writes what
// goes back to it, in the shapes of the Anthropic Messages API, of OpenAI's
// Responses and Chat Completions APIs, of MCP and of Gemini. It knows no client:
// bytes come in, bytes go out.
//
//	provider, err := format.Lookup("anthropic")
//	...
//	calls, err := provider.Calls(body)
//	...
//	reply, err := provider.Results(calls, results)
//
// A response is untrusted: its size and nesting are bounded, and a response
// that cannot be answered (a call without an id, two with the same) is an
// error. A fault of one call, such as a missing name or arguments that are
// nested too deep, is that call's Problem and costs the others nothing.
//
// [ReadList] reads the same calls without a model's API around them.
//
// A model reads the same of a result everywhere: the result's message, then
// its content (or, without any, its structured value, or the streams of a
// command) and the tool's error where that is longer than what the message has of
// it, as text of at most 256 KiB. A format that has blocks for images
// gets them beside the text.
package format
