package config

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/sandbox"
)

const granting = `
tools:
  t:
    plugin: bin/search
    read: [bin]
    allow: [landlockScope]
    env: {A: file, B: file}
    network: {grants: [a.example], ask: true}
    strict: true
    grace: 5s
    data: true
`

func withFlags(t *testing.T, flags ...Flag) (*Loaded, error) {
	t.Helper()
	m := sut(withFile(granting), "B=host")
	return Load(Options{Path: "/etc/th/toolhost.yaml", Machine: &m, Flags: flags})
}

// Lists of flags add to those below, anything else takes its place; what a shell has read
// stands as it is.
func TestFlagsOnTopOfATool(t *testing.T) {
	l, err := withFlags(
		t, given("read", "workspace", "$HOME"), given("allow", "landlockScope"), given("env", "A=${x}", "B", "C", "PATH=/x"), given("network", "b.example", "c.example:443"),
		given("grace", "0"), given("timeout", "0"), given("soft", "3s"), given("sha256", strings.Repeat("A", 64)),
	)
	if err != nil {
		t.Fatal(err)
	}
	tool, bare := l.Tools[0], l.Default
	p := tool.Sandbox
	if want := []string{"/etc/th/bin", "workspace", "$HOME"}; !slices.Equal(p.Read, want) || !slices.Equal(bare.Sandbox.Read, want[1:]) {
		t.Errorf("read %q and %q", p.Read, bare.Sandbox.Read)
	}
	if !slices.Equal(p.Allow, []string{"landlockScope", "sharedUid", "landlockScope"}) || !p.Strict {
		t.Errorf("allow %q, strict %t", p.Allow, p.Strict)
	}
	if p.Network != sandbox.NetworkGrants || len(p.Grants) != 2 || !p.AskNetwork || bare.Sandbox.AskNetwork {
		t.Errorf("network %s %v, asks %t", p.Network, p.Grants, p.AskNetwork)
	}
	if want := []string{"A=file", "B=file", "A=${x}", "B=host", "PATH=/x"}; !slices.Equal(tool.Env, want) {
		t.Errorf("env %q, want %q", tool.Env, want)
	}
	if tool.Grace != budget.NoGrace || tool.SHA256 != strings.Repeat("a", 64) {
		t.Errorf("grace %s, sha256 %s", tool.Grace, tool.SHA256)
	}
	asked := l.Config.Timeouts
	if len(asked) != 2 || asked[0].Timeout != 0 || asked[0].Detail != "--timeout" || asked[1].Soft != 3*time.Second || asked[1].Rank != budget.RankFlag {
		t.Errorf("asks %+v", asked)
	}
	checkValue(t, l, "t", "read", "[/etc/th/bin] and [workspace, \"$$HOME\"]", "--read")
	checkValue(t, l, "t", "network", "[b.example, \"c.example:443\"]", "--network")
	checkValue(t, l, "t", "strict", "true", "/etc/th/toolhost.yaml:9")
}

func TestTheFlagOfNoSandboxTakesAllGrantsAway(t *testing.T) {
	l, err := withFlags(t, given("tier", "none"))
	if err != nil {
		t.Fatal(err)
	}
	if tool := l.Tools[0]; tool.Data || len(tool.Sandbox.Read) > 0 || tool.Sandbox.AskNetwork || tool.Sandbox.Strict || tool.Sandbox.Tier != sandbox.TierNone {
		t.Errorf("%+v", tool.Sandbox)
	}
}

// Flags alone are judged as those beside a file.
func TestFlagsAlone(t *testing.T) {
	l, err := OfFlags([]Flag{given("turn.reserve", "0"), given("turn.deadline", "2s"), given("journal.maxAge", "1h"), given("limits.network", "a.example"), given("cpu", "50%")})
	if err != nil {
		t.Fatal(err)
	}
	if b := l.Turn.Budget; b.Reserve != budget.NoReserve || b.Deadline != 2*time.Second || l.Journal.MaxAge != time.Hour || l.Default.Limits.CPUPercent != 50 {
		t.Errorf("%+v %+v", b, l.Journal)
	}
	if c := l.Config.Ceiling; c.Network != sandbox.NetworkGrants || len(c.Grants) != 1 || c.Source != "--limits.network" {
		t.Errorf("ceiling %+v", c)
	}
	for want, flag := range map[string]Flag{
		`--turn.reserve: "-1s" is negative: write`:                                     given("turn.reserve", "-1s"),
		`--grace: "-1s" is negative: write`:                                            given("grace", "-1s"),
		`--soft: "0" is not positive`:                                                  given("soft", "0"),
		`--env: "A B" is not a name of a variable: write`:                              given("env", "A B=x"),
		`--network: --network host says all of the network, and there is another`:      given("network", "a.example", "host"),
		`--limits.network: --limits.network host says all of the network`:              given("limits.network", "host", "none"),
		`--network: network grant "x y" is not a name`:                                 given("network", "x y"),
		`--network: --network ask does not say which name: write network: {ask: true}`: given("network", "ask"),
		`--require: "x" is unknown: must be one of landlock`:                           given("require", "x"),
		`--strict: "yes" is neither true nor false`:                                    given("strict", "yes"),
	} {
		if _, err := OfFlags([]Flag{flag}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", flag, err, want)
		}
	}
}
