// Package service tests toolhost as what it is on a machine of its users: a
// package, a systemd service, a user's service, and a plain command. It has tests
// only, and they want a machine of their own: `make service` runs them in a VM.
package service
