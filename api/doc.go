// Package api defines the types of toolhost's wire formats and journal: calls,
// their results, events and turns. The library's other packages, the daemon and
// its clients share them. A Go program that only talks to a daemon needs just
// this package and client. It imports only the standard library.
//
// Fields may be added to these types; JSON names never change.
package api
