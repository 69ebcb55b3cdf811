package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/fleet/internal/link"
)

// NATSConfig is what a nats-server of one's own needs in its configuration to be the
// engine of a fleet: each party's key and rights, and pings that find dead connections
// early. Keys are public nkeys, those of workers by their names.
func NATSConfig(caller string, workers map[string]string) string {
	var b strings.Builder
	b.WriteString("# The parties of a toolhost fleet. Each has its key, and the rights that its part needs.\n")
	b.WriteString("# Of several authorization blocks a server takes the last: put the users of several daemons into one.\n")
	b.WriteString("authorization: {\n  users: [\n")
	writeUser(&b, "the daemon", caller, link.CallerRights(caller))
	for _, name := range slices.Sorted(maps.Keys(workers)) {
		writeUser(&b, "worker "+name, workers[name], link.WorkerRights(name))
	}
	b.WriteString("  ]\n}\nping_interval: \"2s\"\nping_max: 2\n")
	return b.String()
}

func writeUser(b *strings.Builder, who, key string, r link.Rights) {
	fmt.Fprintf(b, "    # %s\n    {nkey: %s, permissions: {publish: {allow: %s}, subscribe: {allow: %s}}}\n", who, key, list(r.Publish), list(r.Subscribe))
}

func list(subjects []string) string {
	raw, err := json.Marshal(subjects)
	if err != nil {
		return "[]" // a bug: strings can always be written
	}
	// ">" is written as it is.
	return strings.ReplaceAll(string(raw), `\u003e`, ">")
}
