// Package network says what a call may reach by name or address, and how that is arranged: grants, a ceiling over them,
// the addresses that a name must not lead to, and the plan of listening sockets and routes for the call's own network
// namespace. It is pure: package network/relay serves what is planned here.
package network
