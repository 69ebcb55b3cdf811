// Package mcpname gives the tools of MCP servers names that every model API and
// the plugin contract take: 1 to 64 of A-Z, a-z, 0-9, _ and -. It is pure, and
// the same input always gives the same name.
//
// A name that does not fit is replaced by what of it can be read, an
// underscore, and the first ten hexadecimal digits of its SHA-256. Two names
// that come out alike (which takes malice, or a server called a__b beside one
// called a) are for the caller to find and refuse.
package mcpname

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/toolhost/toolhost/internal/lazy"
)

// MaxBytes is the length of the longest name.
const MaxBytes = 64

// Separator stands between a server's name and its tool's.
const Separator = "__"

const hashDigits = 10

var (
	legal   = lazy.Regexp(`^[A-Za-z0-9_-]{1,64}$`)
	illegal = lazy.Regexp(`[^A-Za-z0-9_-]+`)
	hashed  = lazy.Regexp(`_[0-9a-f]{10}$`)
)

// ToolName is what a model calls a server's tool: server__tool, if that fits.
// It is never session_status, which is toolhost's own.
func ToolName(server, tool string) string {
	name := server + Separator + tool
	if legal().MatchString(name) {
		return name
	}
	return shorten(name, server+"\x00"+tool)
}

// Safe is the form in which a tool's own name passes the plugin contract: the
// name itself, if that fits. Where it goes to models without its server's name,
// the caller refuses session_status.
func Safe(tool string) string {
	if legal().MatchString(tool) {
		return tool
	}
	return shorten(tool, tool)
}

// Hashed says whether a name may be a replacement, so that the tool's own name
// must be looked up: Safe never gives any other name for a tool that is called
// differently.
func Hashed(safe string) bool { return hashed().MatchString(safe) }

// LeftOut returns the beginning of the warning that a server's tool is not
// offered: the adapter's process prints it, and the host recognizes it.
func LeftOut(tool string) string { return fmt.Sprintf("tool %q is left out: ", tool) }

func shorten(readable, identity string) string {
	readable = illegal().ReplaceAllString(readable, "_")
	readable = readable[:min(len(readable), MaxBytes-hashDigits-1)]
	sum := sha256.Sum256([]byte(identity))
	return readable + "_" + hex.EncodeToString(sum[:])[:hashDigits]
}
