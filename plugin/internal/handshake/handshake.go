// Package handshake holds what both ends of go-plugin's handshake must agree on.
package handshake

import goplugin "github.com/hashicorp/go-plugin"

// PluginName is the one plugin that a tool's binary dispenses.
const PluginName = "tool"

// Version is the protocol version of toolhost.plugin.v1.
const Version = 1

// Config is go-plugin's handshake. The cookie keeps a tool that is started by
// hand from waiting for a host; it is no secret.
func Config() goplugin.HandshakeConfig {
	return goplugin.HandshakeConfig{
		ProtocolVersion:  Version,
		MagicCookieKey:   "TOOLHOST_PLUGIN",
		MagicCookieValue: "toolhost.plugin.v1",
	}
}
