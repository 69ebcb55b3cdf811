package main

import (
	"fmt"

	"github.com/toolhost/toolhost/network"
	"github.com/toolhost/toolhost/sandbox"
)

// grantNetwork puts what --net says in the place of the policy's network.
func (f *callFlags) grantNetwork(p *sandbox.Policy) error {
	if len(f.net) == 0 {
		return nil
	}
	if word := f.net[0]; len(f.net) == 1 && (word == "" || word == sandbox.NetworkNone || word == sandbox.NetworkHost) {
		if word != "" {
			p.Network, p.Grants, p.AskNetwork = word, nil, false
		}
		return nil
	}
	grants := []network.Grant{}
	for _, word := range f.net {
		if word == sandbox.NetworkNone || word == sandbox.NetworkHost {
			return fmt.Errorf("--net %s says all of the network, and there is another --net: leave one of them out", word)
		}
		g, err := network.Parse(word)
		if err != nil {
			return fmt.Errorf("--net: %w", err)
		}
		grants = append(grants, g)
	}
	p.Network, p.Grants = sandbox.NetworkGrants, grants
	return nil
}
