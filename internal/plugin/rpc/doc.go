// Package rpc is gRPC over one HTTP/2 connection (RFC 9113, gRPC's
// PROTOCOL-HTTP2.md), for a tool and its host: a [Client] that opens streams on a
// connection which exists, and a [Server] that handles them. Either costs a
// process less to start and to keep than a gRPC library that balances loads over
// many connections, and one goroutine a connection.
//
// Frames are read and written by x/net/http2's Framer, header blocks by its
// hpack. What the other side may make this one hold is bounded: a message by
// Options.MaxMessageBytes, all of them by Options.Received and the windows of
// flow control, a header list by maxHeaderBytes, the streams by maxStreams, and
// what waits to be written by maxPendingBytes.
//
// Messages are not compressed, and compressed ones are refused: none is offered.
package rpc
