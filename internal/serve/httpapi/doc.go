// Package httpapi is the daemon's HTTP API: JSON and server-sent events over a
// turn.Manager, its journal and a catalogue of tools, as an http.Handler.
//
// Who may use it is decided for every request before anything of it is read but
// its header: on a unix socket by the peer's user (SO_PEERCRED, unix(7)), on
// loopback TCP by a bearer token or a browser's session, and nobody else. Host
// and Origin are checked, so that no web page elsewhere can reach it. Bodies are
// bounded, strict JSON, and checked by the schemas of the OpenAPI document,
// which is made from the same table as the routes.
//
// Nobody who reads slowly holds up a call, or anybody else: all streams read
// Turn.Events, each at its own pace, and one that takes nothing for Config.Stall
// is dropped.
package httpapi
