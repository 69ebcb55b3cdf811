// Package client is a client of a toolhost daemon's HTTP API: on a unix socket,
// where the daemon identifies the caller by its user ID, or on TCP with a token.
// Its types are those of package api. It imports nothing else but the standard
// library. A daemon's /api/openapi.json describes the API for other languages.
//
// A host program begins a turn, runs the calls that a model requests, and ends
// the turn:
//
//	daemon, err := client.New(client.Options{Socket: "/run/toolhost/toolhost.sock"})
//	turn, err := daemon.Begin(ctx, api.TurnSpec{})
//	results, err := daemon.Run(ctx, turn.TurnID, []api.Call{{ID: "1", Tool: "search", Arguments: arguments}})
//	err = daemon.End(ctx, turn.TurnID)
//
// Each call gets exactly one result, in call order. If the context of Run ends,
// or the connection breaks, the daemon aborts the turn, so that nothing runs on
// without its caller.
//
// A Client is safe for concurrent use. Its methods return an *api.Error if the
// daemon refused the request, and another error if it could not be reached.
package client
