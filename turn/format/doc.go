// Package format decodes the tool calls in a model's response and encodes their
// results, in the formats of the Anthropic Messages API, OpenAI's Responses and
// Chat Completions APIs, MCP and Gemini. It contains no API client.
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
// nested too deep, is that call's Problem and does not affect the others.
//
// [ReadList] reads calls from a plain JSON list.
//
// A result has the same text in all formats, at most 256 KiB: its message, then
// its content (or, without any, its structured value, or the streams of a
// command), and the tool's error if the message does not quote all of it.
// Formats with image blocks get images besides the text.
package format
