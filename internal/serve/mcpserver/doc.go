// Package mcpserver offers tools to MCP clients, over any transport of the
// official SDK: one connection over stdio, or many over streamable HTTP.
//
// MCP does not tell where a model's turn begins and ends: a session may last
// for weeks, its calls come one by one or at once, and each is answered as soon
// as it is over. So each call is a turn of its own, of one call. It is aborted
// by itself when the client cancels it, the cap on a turn's calls never makes a
// long session useless, and the operator's deadline and tool time hold for each
// call. What a turn would do between calls, the session does instead: an
// exclusive tool runs alone in it, calls beyond the parallel ones wait in line,
// an approval for the rest of the turn holds for the rest of the session,
// session_status reports all of the session's calls, and identical calls are
// counted as long as they follow one another: a call of anything else, or a
// pause of a minute, is taken for a new thought of the model's.
//
// Clients of the protocol's versions up to 2025-11-25 are asked by elicitation
// while their request waits. From 2026-07-28 on a question is the answer to the
// request, which the client then makes again with a human's answer: the call
// goes on meanwhile, and the request that comes back is joined to it by the
// state that it carries. It never begins a second call.
//
// Input of clients is checked before the SDK reads it, which ends a session at
// the first line that is not a message: see message.go.
//
// What wrapped servers have beside tools is package gateway's, below internal; host.go is all
// that it needs of the Server. The files here: server.go, tools.go and find.go (what is
// offered), call.go (a call and the requests that wait for it), session.go, peer.go, gate.go,
// ask.go, form.go and question.go (what humans are asked), progress.go, result.go, message.go
// (what clients may send), http.go, stdio.go, pipe.go and lines.go (connections).
package mcpserver
