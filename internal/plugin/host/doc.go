// Package host is the host's side of a tool's connection. It trusts the child
// with nothing: the handshake is bounded, the socket is reached through a
// descriptor of the call's own folder and its peer's uid is checked
// (SO_PEERCRED, unix(7)), messages are capped, and a breach of the protocol is a
// ProtocolError.
//
// This package ends no process: its starter kills it, and Close cleans up
// afterwards.
package host
