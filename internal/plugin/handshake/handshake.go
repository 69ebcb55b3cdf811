// Package handshake holds what both ends of go-plugin's handshake must agree on.
// It has go-plugin's own names and values (internal/goplugin of its host and
// server), so that a tool need not link that.
package handshake

// PluginName is the one plugin that a tool's binary dispenses.
const PluginName = "tool"

// Version is the protocol version of toolhost.plugin.v1, and CoreVersion that of
// the handshake's line.
const (
	Version     = 1
	CoreVersion = 1
)

// MaxMessageBytes bounds one message of a tool.
const MaxMessageBytes = 4 << 20

// MaxQuestions bounds those of one call that wait for an answer: one more ends it.
const MaxQuestions = 8

// Service is that of toolhost.plugin.v1, as gRPC writes it before the name of a method.
const Service = "/toolhost.plugin.v1.Tool/"

// The cookie keeps a tool that is started by hand from waiting for a host; it is
// not a secret.
const (
	CookieKey   = "TOOLHOST_PLUGIN"
	CookieValue = "toolhost.plugin.v1"
)

// Variables by which go-plugin's host tells a plugin its terms.
const (
	// SocketDir is the folder in which the plugin makes its socket.
	SocketDir = "PLUGIN_UNIX_SOCKET_DIR"
	// ClientCert is set by a host that wants TLS (AutoMTLS).
	ClientCert = "PLUGIN_CLIENT_CERT"
)

// Variables are all of them.
var Variables = []string{
	"PLUGIN_MIN_PORT", "PLUGIN_MAX_PORT", "PLUGIN_PROTOCOL_VERSIONS", ClientCert, SocketDir, "PLUGIN_UNIX_SOCKET_GROUP", "PLUGIN_MULTIPLEX_GRPC",
}
