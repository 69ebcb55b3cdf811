package config

import (
	"fmt"
	"io/fs"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/network"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// toolCase says what a key of tools, classes and server tools does.
type toolCase struct {
	value string
	get   func(Tool) any
	want  any
}

func ask(t Tool) budget.Ask {
	a := t.Timeouts[len(t.Timeouts)-1]
	a.Detail, a.Rank = "", 0
	return a
}

func questionAsk(t Tool) any {
	list := t.Request().Profiles[budget.Password]
	a := list[len(list)-1]
	a.Detail, a.Rank = "", 0
	return a
}

func global(a budget.Ask) budget.Ask {
	a.Layer = budget.LayerGlobal
	return a
}

var toolCases = map[string]toolCase{
	"mode":                      {"deny", func(t Tool) any { return t.Mode }, turn.ModeDeny},
	"deny":                      {"{path: [\"/etc/**\", 5]}", func(t Tool) any { return fmt.Sprint(t.Rules) }, `[deny: {path: ["/etc/**", "5"]}]`},
	"ask":                       {"{path: \"!/srv/**\"}", func(t Tool) any { return fmt.Sprint(t.Rules) }, `[ask: {path: "!/srv/**"}]`},
	"destructive":               {"false", func(t Tool) any { return t.Destructive }, new(false)},
	"readOnly":                  {"true", func(t Tool) any { return t.Request().Tool.ReadOnly }, true},
	"idempotent":                {"true", func(t Tool) any { return t.Request().Tool.Idempotent }, true},
	"concurrency":               {"exclusive", func(t Tool) any { return t.Concurrency }, Exclusive},
	"running":                   {"3", func(t Tool) any { return t.Request().Pool.Running }, 3},
	"prestart":                  {"3", func(t Tool) any { return t.Request().Prestart }, 3},
	"where":                     {"{gpu: a100}", func(t Tool) any { return t.Request().Where }, map[string]string{"gpu": "a100"}},
	"turns":                     {"child", func(t Tool) any { return t.ChildTurns }, true},
	"repeatable":                {"true", func(t Tool) any { return t.Repeatable }, true},
	"timeout":                   {"7s", func(t Tool) any { return ask(t) }, global(budget.Ask{Timeout: 7 * time.Second})},
	"minTimeout":                {"2s", func(t Tool) any { return ask(t) }, global(budget.Ask{TimeoutUnset: true, Min: 2 * time.Second})},
	"maxTimeout":                {"2h", func(t Tool) any { return ask(t) }, global(budget.Ask{TimeoutUnset: true, Max: 2 * time.Hour})},
	"soft":                      {"3s", func(t Tool) any { return ask(t) }, global(budget.Ask{TimeoutUnset: true, Soft: 3 * time.Second})},
	"timeouts.QUESTION.default": {"7s", questionAsk, global(budget.Ask{Timeout: 7 * time.Second})},
	"timeouts.QUESTION.min":     {"2s", questionAsk, global(budget.Ask{TimeoutUnset: true, Min: 2 * time.Second})},
	"timeouts.QUESTION.max":     {"50m", questionAsk, global(budget.Ask{TimeoutUnset: true, Max: 50 * time.Minute})},
	"grace":                     {"0s", func(t Tool) any { return t.Request().Grace }, budget.NoGrace},
	"stream.initial":            {"4s", func(t Tool) any { return t.Request().Stream }, budget.Stream{Initial: 4 * time.Second}},
	"stream.gap":                {"5s", func(t Tool) any { return t.Request().Stream }, budget.Stream{Gap: 5 * time.Second}},
	"stream.total":              {"6s", func(t Tool) any { return t.Request().Stream }, budget.Stream{Total: 6 * time.Second}},
	"memory":                    {"1.5GiB", func(t Tool) any { return t.Request().Limits }, supervisor.Limits{MemoryBytes: 3 << 29}},
	"pids":                      {"infinity", func(t Tool) any { return t.Request().Limits }, supervisor.Limits{Pids: supervisor.Unlimited}},
	"cpu":                       {"250%", func(t Tool) any { return t.Request().Limits }, supervisor.Limits{CPUPercent: 250}},
	"cpuWeight":                 {"10000", func(t Tool) any { return t.Request().Limits }, supervisor.Limits{CPUWeight: 10000}},
	"ioWeight":                  {"1", func(t Tool) any { return t.Request().Limits }, supervisor.Limits{IOWeight: 1}},
	"ioMax.DEVICE.read":         {"1MiB", ioMax, cgroup.IOMax{Major: 8, Minor: 16, ReadBytes: 1 << 20}},
	"ioMax.DEVICE.write":        {"2MiB", ioMax, cgroup.IOMax{Major: 8, Minor: 16, WriteBytes: 2 << 20}},
	"ioMax.DEVICE.readOps":      {"3", ioMax, cgroup.IOMax{Major: 8, Minor: 16, ReadOps: 3}},
	"ioMax.DEVICE.writeOps":     {"4", ioMax, cgroup.IOMax{Major: 8, Minor: 16, WriteOps: 4}},
	"cpuTime":                   {"90s", func(t Tool) any { return t.Request().Limits }, supervisor.Limits{CPUTime: 90 * time.Second}},
	"output":                    {"64k", func(t Tool) any { return t.Request().Limits }, supervisor.Limits{OutputBytes: 64 << 10}},
	"outputTotal":               {"10MiB", func(t Tool) any { return t.Request().Limits }, supervisor.Limits{OutputTotalBytes: 10 << 20}},
	"spill":                     {"1GiB", func(t Tool) any { return t.Request().Limits }, supervisor.Limits{SpillBytes: 1 << 30}},
	"openFiles":                 {"99", func(t Tool) any { return t.Request().Limits }, supervisor.Limits{OpenFiles: 99}},
	"workspace":                 {"64MiB", func(t Tool) any { return t.Request().Limits }, supervisor.Limits{WorkspaceBytes: 64 << 20}},
	"workspaceInodes":           {"1000", func(t Tool) any { return t.Request().Limits }, supervisor.Limits{WorkspaceInodes: 1000}},
	"tmp":                       {"16MiB", func(t Tool) any { return t.Request().Limits }, supervisor.Limits{TmpBytes: 16 << 20}},
	"tier":                      {"none", func(t Tool) any { return t.Request().Sandbox.Tier }, "none"},
	"read":                      {"[~/src, workspace]", func(t Tool) any { return t.Request().Sandbox.Read }, []string{"/home/me/src"}},
	"write":                     {"[/srv/data]", func(t Tool) any { return t.Request().Sandbox.Write }, []string{"/srv/data"}},
	"connections":               {"9", func(t Tool) any { return t.Request().Limits.Network }, network.Limits{Connections: 9}},
	"connectionsTotal":          {"10", func(t Tool) any { return t.Request().Limits.Network }, network.Limits{TotalConnections: 10}},
	"sent":                      {"1MiB", func(t Tool) any { return t.Request().Limits.Network }, network.Limits{SentBytes: 1 << 20}},
	"received":                  {"2MiB", func(t Tool) any { return t.Request().Limits.Network }, network.Limits{ReceivedBytes: 2 << 20}},
	"networkRate":               {"3MiB", func(t Tool) any { return t.Request().Limits.Network }, network.Limits{Rate: 3 << 20}},
	"connectionIdle":            {"40s", func(t Tool) any { return t.Request().Limits.Network }, network.Limits{Idle: 40 * time.Second}},
	"connectTimeout":            {"5s", func(t Tool) any { return t.Request().Limits.Network }, network.Limits{Dial: 5 * time.Second}},
	"network": {"[api.example.com, {name: \"*.b.example\", ports: [8443], tls: true}]", func(t Tool) any { return t.Request().Sandbox.Grants }, []network.Grant{
		{Host: "api.example.com", Ports: []uint16{80, 443}}, {Host: "*.b.example", Ports: []uint16{8443}, TLS: true},
	}},
	"strict":                  {"true", func(t Tool) any { return t.Request().Sandbox.Strict }, true},
	"require":                 {"[landlock]", func(t Tool) any { return t.Request().Sandbox.Require }, []string{"landlock"}},
	"allow":                   {"[sharedUid]", func(t Tool) any { return t.Request().Sandbox.Allow }, []string{"sharedUid"}},
	"env":                     {"[A=b=c, CREDENTIALS_DIRECTORY, NOT_SET]", func(t Tool) any { return t.Request().Env }, []string{"A=b=c", "CREDENTIALS_DIRECTORY=/run/creds"}},
	"dir":                     {"workspace", func(t Tool) any { return t.Request().Dir }, "/workspace"},
	"data":                    {"true", func(t Tool) any { return t.Data }, true},
	"secrets.VARIABLE.secret": {"s", func(t Tool) any { return t.Secrets }, []SecretUse{{Variable: "A_KEY", Secret: "s"}}},
	"secrets.VARIABLE.as":     {"file", func(t Tool) any { return t.Secrets }, []SecretUse{{Variable: "A_KEY", Secret: "s", File: true}}},
}

func ioMax(t Tool) any { return t.Request().Limits.IOMax[0] }

// beside is what a key needs next to it.
var beside = map[string]string{"secrets.VARIABLE.as": "secret: s, "}

// inline writes a path and its value as nested flow mappings, without the
// outermost braces.
func inline(path, value string) string {
	name, rest, more := strings.Cut(path, ".")
	switch name {
	case "DEVICE":
		name = `"8:16"`
	case "VARIABLE":
		name = "A_KEY"
	case "QUESTION":
		name = "password"
	}
	if !more {
		return name + ": " + value
	}
	return name + ": {" + inline(rest, value) + "}"
}

// member is a key with its value and what it needs.
func member(path, value string) string {
	text := inline(path, value)
	if needs := beside[path]; needs != "" {
		i := strings.LastIndexByte(text, '{') + 1
		text = text[:i] + needs + text[i:]
	}
	return text
}

// Every key of a tool does the same in a class, in a tool's entry, and for a
// single tool of a server.
func TestKeysOfTools(t *testing.T) {
	for path, c := range toolCases {
		for place, text := range map[string]string{
			"class":       "classes: {c: {%s}}\ntools: {t: {plugin: bin/search, class: c}}",
			"tool":        "tools: {t: {plugin: bin/search, %s}}",
			"server tool": "tools: {t: {mcp: [server], tools: {one: {%s}}}}",
		} {
			l := mustLoad(t, "secrets: {s: {file: secrets/api}}\n"+fmt.Sprintf(text, member(path, c.value)))
			tool := l.Tools[0].Of("one")
			if got := c.get(tool); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s in a %s gives %+v, want %+v", path, place, got, c.want)
			}
		}
		checkSystemd(t, path, c)
	}
}

func checkSystemd(t *testing.T, path string, c toolCase) {
	k := at(toolKeys, path)
	if k == nil || k.systemd == "" {
		return
	}
	l := mustLoad(t, "tools: {t: {plugin: bin/search, "+inline(k.systemd, c.value)+"}}")
	if got := c.get(l.Tools[0]); !reflect.DeepEqual(got, c.want) {
		t.Errorf("%s gives %+v, want %+v", k.systemd, got, c.want)
	}
}

// hostCase says what any other key does.
type hostCase struct {
	text string
	get  func(*Loaded) any
	want any
}

func first(get func(Tool) any) func(*Loaded) any {
	return func(l *Loaded) any { return get(l.Tools[0]) }
}

func TestKeysOfTheHost(t *testing.T) {
	for path, c := range hostCases {
		l, err := loadFiles(t, map[string]string{
			"/etc/th/toolhost.yaml": c.text, "/etc/th/conf.d/a.yaml": "tools: {included: {plugin: ../bin/grep}}",
		})
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if got := c.get(l); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s gives %+v, want %+v", path, got, c.want)
		}
	}
}

// Every row of the table has a case, so that no key is without effect.
func TestEveryKeyHasACase(t *testing.T) {
	rows := 0
	walk(rootKeys, "", func(path string, k *key) {
		if k.kind == nil {
			return
		}
		rows++
		for _, place := range []string{"classes.CLASS.", "tools.TOOL.tools.NAME.", "tools.TOOL."} {
			if common, ok := strings.CutPrefix(path, place); ok {
				if _, ok := toolCases[common]; ok {
					return
				}
				break
			}
		}
		if _, ok := hostCases[path]; !ok {
			t.Errorf("key %s has no case here", path)
		}
	})
	if rows < 150 {
		t.Errorf("the table has only %d rows with values", rows)
	}
}

// Defaults that the table names are those of the packages that take them.
func TestBuiltInDefaults(t *testing.T) {
	var all strings.Builder
	for _, v := range mustLoad(t, "").Default.Values() {
		fmt.Fprintf(&all, ", %s", inline(v.Path, v.Text))
	}
	text := strings.NewReplacer("env: {}, ", "", "secrets: {}, ", "").Replace(all.String())
	tool := mustLoad(t, "tools: {t: {plugin: bin/search"+text+"}}").Tools[0]
	limits := supervisor.DefaultLimits()
	limits.OpenFiles, limits.WorkspaceInodes = 1024, 64<<10
	if !reflect.DeepEqual(tool.Limits, limits) {
		t.Errorf("built-in limits are %+v, want %+v", tool.Limits, limits)
	}
	profile, _ := budget.Standard(budget.ToolCall)
	r := budget.Resolve(budget.Profile{}, tool.Timeouts...)
	if r.Timeout != profile.Default || r.Min != profile.Min || r.Max != profile.Max || r.SoftBudget != budget.DefaultSoft || tool.Grace != budget.DefaultGrace {
		t.Errorf("built-in timeouts are %+v with grace %s", r, tool.Grace)
	}
}

// Devices can be named by their path.
func TestDevices(t *testing.T) {
	m := sut(withFile("limits: {ioMax: {/dev/sdb: {read: 1MiB, write: 2MiB}}}"))
	m.Files.(fstest.MapFS)["dev/sdb"] = &fstest.MapFile{Mode: fs.ModeDevice, Sys: &syscall.Stat_t{Rdev: 8<<8 | 16}}
	m.Files.(fstest.MapFS)["dev/null"] = &fstest.MapFile{Mode: fs.ModeDevice | fs.ModeCharDevice, Sys: &syscall.Stat_t{}}
	l, err := Load(Options{Path: "/etc/th/toolhost.yaml", Machine: &m})
	if err != nil || !reflect.DeepEqual(l.Config.Limits.IOMax, []cgroup.IOMax{{Major: 8, Minor: 16, ReadBytes: 1 << 20, WriteBytes: 2 << 20}}) {
		t.Errorf("%+v, %v", l, err)
	}
	if _, wrong := m.device("/dev/null"); wrong == "" {
		t.Error("/dev/null is a block device")
	}
}

// A device is the same one, however a layer names it.
func TestDevicesOfLayers(t *testing.T) {
	load := func(text string) (*Loaded, error) {
		m := sut(withFile(text))
		m.Files.(fstest.MapFS)["dev/sdb"] = &fstest.MapFile{Mode: fs.ModeDevice, Sys: &syscall.Stat_t{Rdev: 8<<8 | 16}}
		return Load(Options{Path: "/etc/th/toolhost.yaml", Machine: &m})
	}
	for _, names := range [][2]string{{`/dev/sdb`, `"8:16"`}, {`"8:16"`, `/dev/sdb`}, {`"08:016"`, `"8:16"`}} {
		l, err := load(fmt.Sprintf("limits: {ioMax: {%s: {read: 2MiB, write: 2MiB}}}\ntools: {a: {command: [echo], ioMax: {%s: {read: 1MiB}}}}", names[0], names[1]))
		if err != nil {
			t.Fatal(err)
		}
		want := []cgroup.IOMax{{Major: 8, Minor: 16, ReadBytes: 1 << 20, WriteBytes: 2 << 20}}
		if got := l.Tools[0].Limits.IOMax; !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, want %+v", names, got, want)
		}
	}
	_, err := load("limits: {ioMax: {\n  /dev/sdb: {read: 2MiB},\n  \"8:16\": {read: 1MiB}}}")
	if want := `"/dev/sdb" is device 8:16, which has a limit of this kind in line 3, too: take one out`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// Two tools have a pool each, also where they stand on one line.
func TestPoolsOfOneLine(t *testing.T) {
	l, err := load(t, "tools: {a: {command: [echo], running: 1}, b: {command: [echo], running: 1}}\n")
	if err != nil {
		t.Fatal(err)
	}
	if a, b := l.Tools[0].Request().Pool, l.Tools[1].Request().Pool; a.Name == b.Name || a.Running != 1 {
		t.Errorf("%+v and %+v", a, b)
	}
}
