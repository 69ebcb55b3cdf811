package plugin

import (
	"context"

	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// Provider has tools that are known only at run time, such as an adapter's,
// which are another program's. Its methods may be called from several
// goroutines at once.
type Provider interface {
	// Tools lists them for a host's Describe; ctx ends when the host is gone.
	// It may take its time, but must bound that itself: a host that loses its
	// patience can only say that the tool hung, where an error (a *Failure, best)
	// says why there are no tools to be had.
	Tools(ctx context.Context) (Listing, error)
	// Find is the tool that a call names. Hosts remember what they were told, so
	// that most processes are asked for a tool without ever having listed any.
	// Find must not wait for anything: what takes time belongs into the tool's
	// function, under the call's context.
	Find(name string) (Registered, bool)
}

// Listing is what a Provider has.
type Listing struct {
	// Version of the tools, free text.
	Version string
	// Tools have distinct names.
	Tools []Registered
	// Warnings say what is left out and why, a line each, for people.
	Warnings []string
	// Server is what an adapter's server offers beside its tools; nil if nothing.
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
