// Package daemon is toolhost serve: one process that owns a state folder, and lets hosts in
// any language call tools over HTTP (package httpapi) on a unix socket, and on loopback TCP
// if it is told to.  It is up as soon as the socket takes connections, and ends by a signal:
// new work is refused, calls that run may finish for a while, and the rest of them are
// ended. Killed by force, it leaves no tool behind; the next one closes in the journal what
// it had begun.
package daemon
