// Package mcp makes tools of an MCP server: a plugin that starts the server as
// its child, speaks MCP with it over pipes, and offers its tools. Nothing that
// the server does, or leaves undone, keeps the adapter from answering: what
// waits has a bound, what is read has a limit, and a server that dies, hangs,
// floods or lies makes a typed failure with the ends of its stderr.
//
// The layers, from the kernel up: process.go has the server's processes and
// pipes, lines.go tells messages from what else it prints, wire.go sees every
// message before the SDK's client does, session.go has the life of a server,
// serve.go the plugin. describe.go, call.go, content.go and elicit.go say what
// of MCP becomes what of toolhost.plugin.v1.
package mcp
