package plugin

import (
	"os"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/internal/plugin/handshake"
)

// Environ is os.Environ for a program that a tool starts: without what is
// between host and tool only, the handshake's variables.
func Environ() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return name == handshake.CookieKey || slices.Contains(handshake.Variables, name)
	})
}
