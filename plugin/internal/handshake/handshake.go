// Package handshake holds what both ends of go-plugin's handshake must agree on.
package handshake

import goplugin "github.com/hashicorp/go-plugin"

// PluginName is the one plugin that a tool's binary dispenses.
const PluginName = "tool"

// Version is the protocol version of toolhost.plugin.v1.
const Version = 1

// Variables are those by which go-plugin's host tells a plugin its terms.
var Variables = []string{
	"PLUGIN_MIN_PORT", "PLUGIN_MAX_PORT", "PLUGIN_PROTOCOL_VERSIONS", "PLUGIN_CLIENT_CERT",
	goplugin.EnvUnixSocketDir, goplugin.EnvUnixSocketGroup, "PLUGIN_MULTIPLEX_GRPC",
}

// Config is go-plugin's handshake. The cookie keeps a tool that is started by
// hand from waiting for a host; it is not a secret.
func Config() goplugin.HandshakeConfig {
	return goplugin.HandshakeConfig{
		ProtocolVersion:  Version,
		MagicCookieKey:   "TOOLHOST_PLUGIN",
		MagicCookieValue: "toolhost.plugin.v1",
	}
}
