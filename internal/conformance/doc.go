// Package conformance holds a plugin binary, written in any language, to
// toolhost.plugin.v1 (docs/protocol.md): it starts the binary many times, plays
// its host in every way that a host may behave, and says of each rule whether it
// was kept, broken or could not be tried.
//
// All of it happens under a real supervisor. Some checks are plain supervised
// calls of the binary. For the others the supervisor runs a driver, a tool of
// this package's own, which starts the binary beside itself in the same
// sandbox and speaks to it directly; whatever the binary does there ends with
// the driver's call.
//
// Arguments that nobody gave are made up from the tool's schema, and calls with
// made-up arguments are granted nothing that could be changed.
package conformance
