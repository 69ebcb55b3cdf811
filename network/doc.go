// Package network defines what a call may reach by name or address: grants, a ceiling over them, the addresses that a
// name must not resolve to, and the plan of listening sockets and routes for the call's network namespace. The package
// does no I/O: package network/relay serves what is planned here.
package network
