package config

import (
	"slices"
	"strings"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/text"
)

// ofClients are variables that commands read which talk to a daemon.
var ofClients = []string{"TOOLHOST_URL", "TOOLHOST_TOKEN"}

// developers are the beginnings of variables for toolhost's own tests, and of the
// handshake with plugins, which a toolhost inside of a tool sees.
var developers = []string{
	"TOOLHOST_PLUGIN", "TOOLHOST_TEST_", "TOOLHOST_VM", "TOOLHOST_BENCH_", "TOOLHOST_SOAK_", "TOOLHOST_CHURN", "TOOLHOST_SIEGE",
}

// unknownVariables warns of those that look like toolhost's own and are not:
// a mistyped limit should not pass unnoticed. Those that the file asks for by
// name are the operator's.
func (b *builder) unknownVariables() {
	known := knownVariables()
	for _, name := range b.machine.suspects(known) {
		if b.asked[name] {
			continue
		}
		advice := "unset it; there are " + listed(known, "and")
		if i := slices.IndexFunc(known, func(k string) bool { return len(name) <= maxNearBytes && distance(name, k) <= 2 }); i >= 0 {
			advice = "did you mean " + known[i] + "?"
		}
		b.warn((&file{name: text.Cut(name, maxQuotedRunes)}).scalar(""), "the variable is not known, and has no effect: "+advice)
	}
}

// suspects are the variables that are set and look like toolhost's own, but are
// unknown.
func (m Machine) suspects(known []string) (names []string) {
	for _, item := range m.Environ {
		name, value, _ := strings.Cut(item, "=")
		if strings.HasPrefix(name, "TOOLHOST_") && value != "" && !slices.Contains(known, name) && !ofService(name, value) && !slices.Contains(ofClients, name) && !slices.Contains(api.CallVariables, name) &&
			!slices.ContainsFunc(developers, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			names = append(names, name)
		}
	}
	return names
}

// UnknownVariables are the warnings of [Load] about mistyped variables, also where
// the file is wrong. It reads the file only if there may be one.
func UnknownVariables(m Machine, path string) Problems {
	if len(m.suspects(knownVariables())) == 0 {
		return nil
	}
	b := read(m, path)
	b.unknownVariables()
	return b.loaded.Warnings
}

// ofService: Kubernetes makes such variables for every container beside a service
// that is called toolhost.
func ofService(name, value string) bool {
	return strings.HasPrefix(name, "TOOLHOST_SERVICE_") || strings.HasPrefix(name, "TOOLHOST_PORT_") ||
		name == "TOOLHOST_PORT" && strings.Contains(value, "://")
}
