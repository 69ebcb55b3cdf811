package config

import "time"

// MCP are the settings of the MCP server.
type MCP struct {
	// ClientTimeout is how long clients wait for a call's result; 0 is 60 s,
	// budget.Infinite for ever, or as long as there is progress.
	ClientTimeout time.Duration
	// Clients are the ClientTimeouts of single clients, by the names by which
	// they introduce themselves.
	Clients map[string]time.Duration
	// Search: clients are shown tools to find and call the others by.
	Search bool
}

var clientKeys = []*key{
	{
		name: "toolList", kind: enum("full", "search"), std: "full", restart: true,
		doc:  "what clients are shown: all tools, or `find_tool` with `call_read`, `call_write` and `call_destructive` for the tools that it finds",
		sets: to(func(l *Loaded, s setting) { l.MCP.Search = s.data == "search" }),
	},
	field(key{name: "clientTimeout", kind: durationOrInfinite, std: "60s", doc: "how long clients wait for the result of a call, which ends 5s earlier; `infinite` for clients that keep waiting while there is progress"},
		func(l *Loaded) *time.Duration { return &l.MCP.ClientTimeout }),
	{
		name: "clients", kind: durationOrInfinite, names: clientNames, std: "{}",
		doc: "the `clientTimeout` of single clients, by the names that they send", sets: to(func(l *Loaded, s setting) { put(&l.MCP.Clients, s.name, s.data.(time.Duration)) }),
	},
}

var clientNames = namesLike("CLIENT", `^[^.]{1,128}$`, "is not a name of a client: write 1 to 128 characters, without dots")
