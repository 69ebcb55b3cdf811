// Package fleetv1 is the wire contract between the callers and workers of a fleet,
// generated from fleet.proto (make proto).
package fleetv1
