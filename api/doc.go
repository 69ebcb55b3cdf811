// Package api holds the types that go over toolhost's wires and into its
// journal, each once: what a call came to, and why. The library's other
// packages, the daemon and its clients share them, and a Go program that only
// talks to a daemon needs nothing else of toolhost than this package and
// client. It imports nothing but the standard library.
//
// Fields may be added to these types; the names in their JSON never change.
package api
