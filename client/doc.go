// Package client talks to a toolhost daemon over its HTTP API: on a unix
// socket, where the daemon knows the caller by its user, or on loopback TCP
// with a token. The types of the wire are those of package api, the only one
// that this one needs beside the standard library; /api/openapi.json of a daemon
// describes the same for other languages.
//
// A host program begins a turn, has it run the calls that a model asks for, and
// ends it:
//
//	daemon, err := client.New(client.Options{Socket: "/run/toolhost/toolhost.sock"})
//	turn, err := daemon.Begin(ctx, api.TurnSpec{})
//	results, err := daemon.Run(ctx, turn.TurnID, []api.Call{{ID: "1", Tool: "search", Arguments: arguments}})
//	err = daemon.End(ctx, turn.TurnID)
//
// Every call gets exactly one result, in call order. When ctx of Run ends, or
// the connection, the daemon aborts the turn: nothing runs on for a caller that
// has gone.
//
// A Client may be used by several goroutines. Its methods return *api.Error where
// the daemon has refused, and another error where it could not be reached.
package client
