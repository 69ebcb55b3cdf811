// Package mcpsuite runs the MCP project's own conformance suite against the
// reference server of the SDK, wrapped by the daemon and served at /mcp.
package mcpsuite
