// Package relay is the process in which calls' connections by name are served: one child of a host, for all its calls
// with network grants. It holds the sockets that were born in calls' network namespaces, answers their DNS queries,
// checks each connection, and copies bytes. Main is the process's side, Client the host's.
package relay
