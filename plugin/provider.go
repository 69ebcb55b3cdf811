package plugin

import (
	"context"

	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// Provider provides tools that are known only at run time, such as the tools of
// the server behind an adapter. Its methods must be safe for concurrent use.
type Provider interface {
	// Tools lists the tools for a host's Describe; ctx ends when the host is gone.
	// It may block, but must bound the wait itself and return an error that says
	// why there are no tools, best a *Failure: a host whose timeout expires only
	// knows that the tool hung.
	Tools(ctx context.Context) (Listing, error)
	// Find returns the tool that a call names. Hosts cache descriptions, so most
	// processes get calls without ever having listed their tools. Find must not
	// block: slow work belongs in the tool's function, under the call's context.
	Find(name string) (Registered, bool)
}

// Listing is the list of a Provider's tools.
type Listing struct {
	// Version of the tools, free text.
	Version string
	// Tools have distinct names.
	Tools []Registered
	// Warnings say what is left out and why, for people, one line each.
	Warnings []string
	// Server describes the other features of an adapter's server, or is nil.
	Server *pluginv1.Server
}

// fixed are the tools of a binary that knows them.
type fixed []Registered

func (f fixed) Tools(context.Context) (Listing, error) {
	return Listing{Version: version(), Tools: f}, nil
}

func (f fixed) Find(name string) (Registered, bool) {
	for _, tool := range f {
		if tool.Name() == name {
			return tool, true
		}
	}
	return Registered{}, false
}
