package prepare

import (
	"os"
	"slices"
	"strings"
)

// inherited names the variables of the host's environment that a tool may see;
// everything else must be given to it on purpose. placed ones name the host's
// files; a confined tool gets its own.
var (
	inherited = []string{"LANG", "LANGUAGE", "TZ", "TERM"}
	placed    = []string{"PATH", "HOME", "TMPDIR"}
)

func baseEnv(confined bool) []string {
	var env []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "LC_") || slices.Contains(inherited, name) || !confined && slices.Contains(placed, name) {
			env = append(env, entry)
		}
	}
	return env
}
