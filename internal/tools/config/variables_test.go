package config

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/budget"
)

// Each profile has a variable, which overrules the file and moves the profile's
// bounds as the operator's word does.
func TestVariablesOfProfiles(t *testing.T) {
	for _, profile := range slices.Concat(budget.Profiles(), budget.Interactions()) {
		variable := "TOOLHOST_TIMEOUT_" + strings.ToUpper(profile.Name)
		l := mustLoad(t, "timeouts: {"+profile.Name+": {default: 50s}}\ntools: {t: {plugin: bin/search, timeout: 55s}}", variable+"=300ms")
		said := l.Config.Profiles[profile.Name]
		if profile.Name == budget.ToolCall {
			said = append(append(said, l.Config.Timeouts...), l.Tools[0].Timeouts...)
		}
		r := budget.Resolve(profile, said...)
		if r.Timeout != 300*time.Millisecond || r.SourceDetail != variable || r.Clamped || len(r.Warnings)+len(l.Warnings) > 0 {
			t.Errorf("%s: %+v, warnings %v", variable, r, l.Warnings)
		}
		shown := strings.Contains(string(l.Show()), "    default: 300ms  # "+variable+"\n")
		if path := Variables()[variable]; !shown || path != "timeouts."+profile.Name+".default" {
			t.Errorf("%s sets %q, shown as\n%s", variable, path, l.Show())
		}
		if _, err := load(t, "", variable+"=infinite"); err == nil || !strings.Contains(err.Error(), variable+`: "infinite" may not be infinite here`) {
			t.Errorf("%s=infinite: %v", variable, err)
		}
	}
	both := mustLoad(t, "", "TOOLHOST_TIMEOUT=9s", "TOOLHOST_TIMEOUT_TOOL_CALL=8s")
	if r := resolve(both, both.Default); r.Timeout != 8*time.Second {
		t.Errorf("beside TOOLHOST_TIMEOUT: %+v", r)
	}
	l := mustLoad(t, "", "TOOLHOST_TIMEOUT_HEARTBAET=9s")
	if len(l.Warnings) != 1 || !strings.HasSuffix(l.Warnings[0].String(), "did you mean TOOLHOST_TIMEOUT_HEARTBEAT?") {
		t.Errorf("%v", l.Warnings)
	}
}

// What people write for no limit is told apart, each with what to write instead.
func TestZeroNoneAndInfiniteAreToldApart(t *testing.T) {
	const entry = "; no limit is written infinite, in a tool's own entry only"
	for text, want := range map[string]string{
		"tools: {t: {plugin: bin/search, timeout: 0}}":    `"0" is not positive: write a duration such as 30s, or leave it out` + entry,
		"tools: {t: {plugin: bin/search, timeout: 0s}}":   `"0s" is not positive: write a duration such as 30s, or leave it out` + entry,
		"tools: {t: {plugin: bin/search, timeout: none}}": `"none" is not a duration: write one such as 30s, or leave it out` + entry,
		"classes: {c: {timeout: infinite}}":               `"infinite" may not be infinite here: only a tool's own entry may lift its timeout; write a duration such as 30s`,
		"classes: {c: {timeout: none}}":                   `"none" is not a duration: write one such as 30s, or leave it out` + entry,
		"timeouts: {heartbeat: {default: infinite}}":      `"infinite" may not be infinite here: only a tool's own entry may lift its timeout; write a duration such as 30s`,
		"timeouts: {heartbeat: {default: none}}":          `"none" is not a duration: write one such as 30s, or leave it out`,
		"timeouts: {heartbeat: {default: 0}}":             `"0" is not positive: write a duration such as 30s, or leave it out`,
		"timeouts: {heartbeat: {max: infinite}}":          `"infinite" may not be infinite: write a duration such as 30s, or leave it out`,
		"timeouts: {approval: 0}":                         `"0" is not positive: write a duration such as 30s, or leave it out`,
		"timeouts: {approval: 30}":                        `"30" has no unit: write 30s for seconds, 30ms for milliseconds`,
		"timeouts: {approval: infinite}":                  `"infinite" may not be infinite here: only a tool's own entry may lift its timeout; write a duration such as 30s`,
		"turn: {deadline: none}":                          `"none" is not a duration: write one such as 30s, or leave it out`,
		"turn: {toolTime: infinite}":                      `"infinite" may not be infinite: write a duration such as 30s, or leave it out`,
		"limits: {cpuTime: none}":                         `"none" is not a duration: write one such as 30s, or leave it out; no limit is written infinite`,
		"limits: {memory: 0}":                             `"0" is not positive: write a size such as 64MiB, or leave it out; no limit is written infinity`,
		"limits: {memory: unlimited}":                     `"unlimited" is not a size: write one such as 64MiB, or bytes; no limit is written infinity`,
		"limits: {pids: none}":                            `"none" is not a number: write one in plain digits; no limit is written infinity`,
		"limits: {cpu: 0%}":                               `"0%" is not a percentage: write one of one CPU, such as 100% or 250%; no limit is written infinity`,
	} {
		if _, err := load(t, text); err == nil || !strings.HasSuffix(err.Error(), ": "+want) {
			t.Errorf("%s\ngives %v\nwant  %s", text, err, want)
		}
	}
	for value, want := range map[string]string{
		"0": `"0" is not positive`, "none": `"none" is not a duration`, "infinite": `"infinite" may not be infinite here`, "infinity": `"infinity" may not be infinite here`,
	} {
		if _, err := load(t, "", "TOOLHOST_TIMEOUT="+value); err == nil || !strings.Contains(err.Error(), "TOOLHOST_TIMEOUT: "+want) {
			t.Errorf("TOOLHOST_TIMEOUT=%s gives %v, want %s", value, err, want)
		}
	}
}

// Commands that load no configuration warn as those that do.
func TestUnknownVariables(t *testing.T) {
	for text, want := range map[string]int{
		"limits: {pids: none}": 1, "tools: {t: {plugin: bin/search, env: [TOOLHOST_MEMROY]}}": 0, "tools: {t: {plugin: bin/search, env: [TOOLHOST_MEMROY], nonsense: 1}}": 0,
	} {
		m := sut(withFile(text), "TOOLHOST_MEMROY=1GiB", "TOOLHOST_PIDS=7", "TOOLHOST_EMPTY=")
		if got := UnknownVariables(m, "/etc/th/toolhost.yaml"); len(got) != want {
			t.Errorf("%s: %v, want %d", text, got, want)
		}
	}
	service := sut(nil, "TOOLHOST_SERVICE_HOST=10.0.0.1", "TOOLHOST_SERVICE_PORT_API=7070", "TOOLHOST_PORT=tcp://10.0.0.1:7070", "TOOLHOST_PORT_7070_TCP_ADDR=10.0.0.1")
	if got := UnknownVariables(service, "/no/such/file"); got != nil {
		t.Errorf("beside a service in Kubernetes: %v", got)
	}
	if got := UnknownVariables(sut(nil, "TOOLHOST_PORT=7070"), "/dev/null"); len(got) != 1 {
		t.Errorf("a port: %v", got)
	}
	if got := UnknownVariables(sut(nil, "TOOLHOST_PIDS=7"), "/no/such/file"); got != nil {
		t.Errorf("nothing is mistyped: %v", got)
	}
}
