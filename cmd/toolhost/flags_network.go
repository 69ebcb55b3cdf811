package main

import (
	"fmt"

	"github.com/toolhost/toolhost/network"
	"github.com/toolhost/toolhost/sandbox"
)

// grantNetwork puts what --net says in the place of the policy's network.
func (f *callFlags) grantNetwork(p *sandbox.Policy) error { return grantNetwork("--net", f.net, p) }

// grantNetwork puts the words of a flag in the place of the policy's network.
func grantNetwork(flag string, words []string, p *sandbox.Policy) error {
	if len(words) == 0 {
		return nil
	}
	if word := words[0]; len(words) == 1 && (word == "" || word == sandbox.NetworkNone || word == sandbox.NetworkHost) {
		if word != "" {
			p.Network, p.Grants, p.AskNetwork = word, nil, false
		}
		return nil
	}
	grants := []network.Grant{}
	for _, word := range words {
		if word == sandbox.NetworkNone || word == sandbox.NetworkHost {
			return fmt.Errorf("%s %s says all of the network, and there is another %s: leave one of them out", flag, word, flag)
		}
		g, err := network.Parse(word)
		if err != nil {
			return fmt.Errorf("%s: %w", flag, err)
		}
		grants = append(grants, g)
	}
	p.Network, p.Grants = sandbox.NetworkGrants, grants
	return nil
}
