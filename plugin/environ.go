package plugin

import (
	"os"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/internal/plugin/handshake"
)

// Environ returns os.Environ without the variables of the handshake between host
// and tool. Use it for programs that a tool starts.
func Environ() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return name == handshake.CookieKey || slices.Contains(handshake.Variables, name)
	})
}
