package config

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/internal/tools/command"
	"github.com/toolhost/toolhost/network"
	"github.com/toolhost/toolhost/supervisor"
)

func limits(l *Loaded) any     { return l.Config.Limits }
func totals(l *Loaded) any     { return l.Config.Totals }
func firstTotal(l *Loaded) any { return l.Config.Totals.IOMax[0] }
func firstMax(l *Loaded) any   { return l.Config.Limits.IOMax[0] }

func profileAsk(l *Loaded) any {
	list := l.Config.Profiles["handoff"]
	a := list[len(list)-1]
	a.Detail = ""
	return a
}

func retention(l *Loaded) any { return journal.Retention(l.Journal) }

func otlp(l *Loaded) any { return l.Telemetry.OTLP }

func syslog(l *Loaded) any { return l.Telemetry.Syslog }

func firstParam(l *Loaded) any { return l.Tools[0].Command.Params[0] }

func firstKeep(l *Loaded) any { return *l.Tools[0].Request().Keep }

var hostCases = map[string]hostCase{
	"state":      {"state: ~/state", func(l *Loaded) any { return l.State }, "/home/me/state"},
	"include":    {"include: [conf.d/*.yaml]", first(func(t Tool) any { return t.Name + " " + t.Plugin.Path }), "included /etc/th/bin/grep"},
	"kill.grace": {"kill: {grace: 5s}", func(l *Loaded) any { return l.Config.Grace }, 5 * time.Second},

	"timeouts.PROFILE.default": {"timeouts: {handoff: {default: 45s}}", profileAsk, global(budget.Ask{Timeout: 45 * time.Second})},
	"timeouts.PROFILE.min":     {"timeouts: {handoff: {min: 20s}}", profileAsk, global(budget.Ask{TimeoutUnset: true, Min: 20 * time.Second})},
	"timeouts.PROFILE.max":     {"timeouts: {handoff: {max: 2h}}", profileAsk, global(budget.Ask{TimeoutUnset: true, Max: 2 * time.Hour})},
	"timeouts.PROFILE.soft":    {"timeouts: {handoff: {soft: 2s}}", profileAsk, global(budget.Ask{TimeoutUnset: true, Soft: 2 * time.Second})},

	"mcp.toolList":      {"mcp: {toolList: search}", func(l *Loaded) any { return l.MCP.Search }, true},
	"mcp.clientTimeout": {"mcp: {clientTimeout: 2m}", func(l *Loaded) any { return l.MCP.ClientTimeout }, 2 * time.Minute},
	"mcp.clients":       {"mcp: {clients: {\"Visual Studio Code\": infinite}}", func(l *Loaded) any { return l.MCP.Clients["Visual Studio Code"] }, time.Duration(budget.Infinite)},

	"telemetry.otlp.endpoint": {"telemetry: {otlp: {endpoint: \"https://collector:4317\"}}", otlp, OTLP{Endpoint: "https://collector:4317"}},
	"telemetry.otlp.protocol": {"telemetry: {otlp: {protocol: http/protobuf}}", otlp, OTLP{Protocol: "http/protobuf"}},
	"telemetry.otlp.headers":  {"secrets: {a: {file: secrets/api}}\ntelemetry: {otlp: {headers: {X-Key: a}}}", otlp, OTLP{Headers: map[string]string{"X-Key": "a"}}},
	"telemetry.otlp.traces":   {"telemetry: {otlp: {traces: false}}", otlp, OTLP{NoTraces: true}},
	"telemetry.otlp.metrics":  {"telemetry: {otlp: {metrics: false}}", otlp, OTLP{NoMetrics: true}},
	"telemetry.otlp.audit":    {"telemetry: {otlp: {audit: true}}", otlp, OTLP{Audit: true}},
	"telemetry.otlp.interval": {"telemetry: {otlp: {interval: 15s}}", otlp, OTLP{Interval: 15 * time.Second}},
	"telemetry.otlp.timeout":  {"telemetry: {otlp: {timeout: 2s}}", otlp, OTLP{Timeout: 2 * time.Second}},

	"telemetry.syslog.address": {"telemetry: {syslog: {address: \"tcp://127.0.0.1:601\"}}", syslog, Syslog{Address: "tcp://127.0.0.1:601"}},
	"telemetry.syslog.ca":      {"telemetry: {syslog: {ca: bin/grep}}", syslog, Syslog{CA: "/etc/th/bin/grep"}},

	"stream.initial": {"stream: {initial: 4s}", func(l *Loaded) any { return l.Default.Stream }, budget.Stream{Initial: 4 * time.Second}},
	"stream.gap":     {"stream: {gap: 4s}", func(l *Loaded) any { return l.Default.Stream }, budget.Stream{Gap: 4 * time.Second}},
	"stream.total":   {"stream: {total: 4s}", func(l *Loaded) any { return l.Default.Stream }, budget.Stream{Total: 4 * time.Second}},

	"limits.memory":                {"limits: {MemoryMax: 1G}", limits, supervisor.Limits{MemoryBytes: 1 << 30}},
	"limits.pids":                  {"limits: {TasksMax: 7}", limits, supervisor.Limits{Pids: 7}},
	"limits.cpu":                   {"limits: {CPUQuota: 50%}", limits, supervisor.Limits{CPUPercent: 50}},
	"limits.cpuWeight":             {"limits: {CPUWeight: 50}", limits, supervisor.Limits{CPUWeight: 50}},
	"limits.ioWeight":              {"limits: {IOWeight: 50}", limits, supervisor.Limits{IOWeight: 50}},
	"limits.ioMax.DEVICE.read":     {"limits: {ioMax: {\"8:0\": {read: 5k}}}", firstMax, cgroup.IOMax{Major: 8, ReadBytes: 5 << 10}},
	"limits.ioMax.DEVICE.write":    {"limits: {ioMax: {\"8:0\": {write: 5k}}}", firstMax, cgroup.IOMax{Major: 8, WriteBytes: 5 << 10}},
	"limits.ioMax.DEVICE.readOps":  {"limits: {ioMax: {\"8:0\": {readOps: 5}}}", firstMax, cgroup.IOMax{Major: 8, ReadOps: 5}},
	"limits.ioMax.DEVICE.writeOps": {"limits: {ioMax: {\"8:0\": {writeOps: 5}}}", firstMax, cgroup.IOMax{Major: 8, WriteOps: 5}},
	"limits.cpuTime":               {"limits: {cpuTime: 5m}", limits, supervisor.Limits{CPUTime: 5 * time.Minute}},
	"limits.output":                {"limits: {output: 2MB}", limits, supervisor.Limits{OutputBytes: 2 << 20}},
	"limits.outputTotal":           {"limits: {outputTotal: 1024}", limits, supervisor.Limits{OutputTotalBytes: 1024}},
	"limits.spill":                 {"limits: {spill: 2MB}", limits, supervisor.Limits{SpillBytes: 2 << 20}},
	"limits.openFiles":             {"limits: {LimitNOFILE: 2048}", limits, supervisor.Limits{OpenFiles: 2048}},
	"limits.workspace":             {"limits: {workspace: 2MB}", limits, supervisor.Limits{WorkspaceBytes: 2 << 20}},
	"limits.workspaceInodes":       {"limits: {workspaceInodes: 20}", limits, supervisor.Limits{WorkspaceInodes: 20}},
	"limits.tmp":                   {"limits: {tmp: 2MB}", limits, supervisor.Limits{TmpBytes: 2 << 20}},

	"limits.connections":      {"limits: {connections: 9}", limits, supervisor.Limits{Network: network.Limits{Connections: 9}}},
	"limits.connectionsTotal": {"limits: {connectionsTotal: 10}", limits, supervisor.Limits{Network: network.Limits{TotalConnections: 10}}},
	"limits.sent":             {"limits: {sent: 1MiB}", limits, supervisor.Limits{Network: network.Limits{SentBytes: 1 << 20}}},
	"limits.received":         {"limits: {received: 2MiB}", limits, supervisor.Limits{Network: network.Limits{ReceivedBytes: 2 << 20}}},
	"limits.networkRate":      {"limits: {networkRate: 3MiB}", limits, supervisor.Limits{Network: network.Limits{Rate: 3 << 20}}},
	"limits.connectionIdle":   {"limits: {connectionIdle: 40s}", limits, supervisor.Limits{Network: network.Limits{Idle: 40 * time.Second}}},
	"limits.connectTimeout":   {"limits: {connectTimeout: 5s}", limits, supervisor.Limits{Network: network.Limits{Dial: 5 * time.Second}}},
	"limits.network":          {"limits: {network: [\"*.example.com\", \"10.0.0.0/8:22\"]}", func(l *Loaded) any { return fmt.Sprint(l.Config.Ceiling) }, "[\"*.example.com\" \"10.0.0.0/8:22\"]"},
	"network.deny":            {"network: {deny: [203.0.113.0/24, \"2a00:1::7\"]}", func(l *Loaded) any { return fmt.Sprint(l.Config.DenyNetworks) }, "[203.0.113.0/24 2a00:1::7/128]"},

	"totals.memory":                {"totals: {memory: 8GiB}", totals, cgroup.Limits{MemoryBytes: 8 << 30}},
	"totals.pids":                  {"totals: {pids: 4096, memory: infinity}", totals, cgroup.Limits{Pids: 4096}},
	"totals.cpu":                   {"totals: {cpu: 400%}", totals, cgroup.Limits{CPUPercent: 400}},
	"totals.cpuWeight":             {"totals: {cpuWeight: 10}", totals, cgroup.Limits{CPUWeight: 10}},
	"totals.ioWeight":              {"totals: {ioWeight: 10}", totals, cgroup.Limits{IOWeight: 10}},
	"totals.ioMax.DEVICE.read":     {"totals: {ioMax: {\"8:0\": {read: 5k}}}", firstTotal, cgroup.IOMax{Major: 8, ReadBytes: 5 << 10}},
	"totals.ioMax.DEVICE.write":    {"totals: {ioMax: {\"8:0\": {write: 5k}}}", firstTotal, cgroup.IOMax{Major: 8, WriteBytes: 5 << 10}},
	"totals.ioMax.DEVICE.readOps":  {"totals: {ioMax: {\"8:0\": {readOps: 5}}}", firstTotal, cgroup.IOMax{Major: 8, ReadOps: 5}},
	"totals.ioMax.DEVICE.writeOps": {"totals: {ioMax: {\"8:0\": {writeOps: 5}}}", firstTotal, cgroup.IOMax{Major: 8, WriteOps: 5}},

	"admission.running": {"admission: {running: 3}", func(l *Loaded) any { return l.Config.Admission }, supervisor.Admission{Running: 3}},
	"admission.queue":   {"admission: {queue: 3}", func(l *Loaded) any { return l.Config.Admission }, supervisor.Admission{Queue: 3}},
	"admission.wait":    {"admission: {wait: 3s}", func(l *Loaded) any { return l.Config.Admission }, supervisor.Admission{Wait: 3 * time.Second}},

	"admission.prestarted":       {"admission: {prestarted: 3}", func(l *Loaded) any { return l.Config.Prestart }, supervisor.PrestartBudget{Processes: 3}},
	"admission.sandboxes":        {"admission: {sandboxes: false}", func(l *Loaded) any { return l.Config.Prestart }, supervisor.PrestartBudget{NoSandboxes: true}},
	"admission.prestartedMemory": {"admission: {prestartedMemory: 3MiB}", func(l *Loaded) any { return l.Config.Prestart }, supervisor.PrestartBudget{MemoryBytes: 3 << 20}},

	"turn.maxCalls":       {"turn: {maxCalls: 3}", func(l *Loaded) any { return l.Turn }, Turn{Budget: budget.TurnSpec{MaxCalls: 3}}},
	"turn.toolTime":       {"turn: {toolTime: 3m}", func(l *Loaded) any { return l.Turn }, Turn{Budget: budget.TurnSpec{ToolTime: 3 * time.Minute}}},
	"turn.deadline":       {"turn: {deadline: 3m}", func(l *Loaded) any { return l.Turn }, Turn{Budget: budget.TurnSpec{Deadline: 3 * time.Minute}}},
	"turn.streamDuration": {"turn: {streamDuration: 2m}", func(l *Loaded) any { return l.Turn }, Turn{Budget: budget.TurnSpec{StreamDuration: 2 * time.Minute}}},
	"turn.reserve":        {"turn: {reserve: 3s}", func(l *Loaded) any { return l.Turn }, Turn{Budget: budget.TurnSpec{Reserve: 3 * time.Second}}},
	"turn.parallel":       {"turn: {parallel: 3}", func(l *Loaded) any { return l.Turn }, Turn{Parallel: 3}},

	"journal.maxAge":  {"journal: {maxAge: infinite}", retention, journal.Retention{MaxAge: -1}},
	"journal.maxSize": {"journal: {maxSize: infinity}", retention, journal.Retention{MaxBytes: -1}},

	"socket.path":  {"socket: {path: run/t.sock}", func(l *Loaded) any { return l.Daemon.Socket }, "/etc/th/run/t.sock"},
	"socket.mode":  {"socket: {mode: 0660}", func(l *Loaded) any { return l.Daemon.SocketMode }, fs.FileMode(0o660)},
	"socket.group": {"socket: {group: agents}", func(l *Loaded) any { return l.Daemon.SocketGroup }, "agents"},
	"socket.uids":  {"socket: {uids: [1000, 0]}", func(l *Loaded) any { return l.Daemon.SocketUIDs }, []uint32{1000, 0}},
	"listen":       {"listen: 127.0.0.1:7070", func(l *Loaded) any { return l.Daemon.Listen }, "127.0.0.1:7070"},
	"stop.wait":    {"stop: {wait: 2m}", func(l *Loaded) any { return l.Daemon.StopWait }, 2 * time.Minute},

	"dirs.spill":      {"dirs: {spill: /srv/data}", func(l *Loaded) any { return l.Config.SpillDir }, "/srv/data"},
	"dirs.spillTotal": {"dirs: {spillTotal: 1GiB}", func(l *Loaded) any { return l.Config.SpillTotalBytes }, int64(1 << 30)},
	"dirs.store":      {"dirs: {store: ~/store}", func(l *Loaded) any { return l.Config.StoreDir }, "/home/me/store"},
	"dirs.runtime":    {"dirs: {runtime: run}", func(l *Loaded) any { return l.Config.RuntimeDir }, "/etc/th/run"},
	"cgroupParent":    {"cgroupParent: /agents", func(l *Loaded) any { return l.Config.CgroupParent }, "/agents"},

	"secrets.SECRET.file":       {"secrets: {a: {file: secrets/api}}", func(l *Loaded) any { return l.Secrets[0].File }, "/etc/th/secrets/api"},
	"secrets.SECRET.credential": {"secrets: {a: {credential: db}}", func(l *Loaded) any { return l.Secrets[0].File }, "/run/creds/db"},

	"tools.TOOL.plugin":      {"tools: {t: {plugin: bin/search}}", first(func(t Tool) any { return t.Request().Tool.Path }), "/etc/th/bin/search"},
	"tools.TOOL.tool":        {"tools: {t: {plugin: bin/search, tool: x}}", first(func(t Tool) any { return t.Request().Tool.Name }), "x"},
	"tools.TOOL.args":        {"tools: {t: {plugin: bin/search, args: [--in, ~/src, \"${HOME}/x\", \"$$1\", 5]}}", first(func(t Tool) any { return t.Request().Tool.Args }), []string{"--in", "/home/me/src", "/home/me/x", "$1", "5"}},
	"tools.TOOL.sha256":      {"tools: {t: {plugin: bin/search, sha256: " + someHash + "}}", first(func(t Tool) any { return t.Request().SHA256 }), someHash},
	"tools.TOOL.class":       {"classes: {c: {mode: ask}}\ntools: {t: {plugin: bin/search, class: c}}", first(func(t Tool) any { return t.Class + " " + string(t.Mode) }), "c ask"},
	"tools.TOOL.title":       {"tools: {t: {plugin: bin/search, title: T}}", first(func(t Tool) any { return t.Title }), "T"},
	"tools.TOOL.description": {"tools: {t: {plugin: bin/search, description: D}}", first(func(t Tool) any { return t.Description }), "D"},

	"tools.TOOL.command":                {"tools: {t: {command: \"bin/grep -e 'a  b' {pattern}\"}}", first(func(t Tool) any { return t.Command.Argv }), []string{"/etc/th/bin/grep", "-e", "a  b", "{pattern}"}},
	"tools.TOOL.shell":                  {"tools: {t: {command: \"ls | wc -l\", shell: true}}", first(func(t Tool) any { return t.Command }), command.Spec{Argv: []string{"ls | wc -l"}, Shell: true}},
	"tools.TOOL.stdin":                  {"tools: {t: {command: [cat], stdin: \"{text}\"}}", first(func(t Tool) any { return t.Command.Stdin }), "{text}"},
	"tools.TOOL.format":                 {"tools: {t: {command: [cat], format: json}}", first(func(t Tool) any { return t.Command.Format }), command.FormatJSON},
	"tools.TOOL.exitCodes":              {"tools: {t: {command: [cat], exitCodes: {1: ok}}}", first(func(t Tool) any { return t.Command.ExitCodes }), map[int]command.Outcome{1: {OK: true}}},
	"tools.TOOL.exitCodes.CODE.ok":      {"tools: {t: {command: [cat], exitCodes: {3: {ok: true}}}}", first(func(t Tool) any { return t.Command.ExitCodes }), map[int]command.Outcome{3: {OK: true}}},
	"tools.TOOL.exitCodes.CODE.message": {"tools: {t: {command: [cat], exitCodes: {3: {message: m}}}}", first(func(t Tool) any { return t.Command.ExitCodes }), map[int]command.Outcome{3: {Message: "m"}}},
	"tools.TOOL.timeoutArgument":        {"tools: {t: {command: [cat], timeoutArgument: timeout_ms}}", first(func(t Tool) any { return t.Command.TimeoutArgument }), "timeout_ms"},

	"tools.TOOL.params.NAME.type":        {param("type: integer"), firstParam, command.Param{Name: "p", Type: "integer"}},
	"tools.TOOL.params.NAME.description": {param("description: D"), firstParam, command.Param{Name: "p", Description: "D"}},
	"tools.TOOL.params.NAME.enum":        {param("enum: [a, \"b\"]"), firstParam, command.Param{Name: "p", Enum: []json.RawMessage{[]byte(`"a"`), []byte(`"b"`)}}},
	"tools.TOOL.params.NAME.default":     {param("default: x"), firstParam, command.Param{Name: "p", Default: []byte(`"x"`)}},
	"tools.TOOL.params.NAME.required":    {param("required: true"), firstParam, command.Param{Name: "p", Required: new(true)}},
	"tools.TOOL.params.NAME.items":       {param("items: integer, type: array"), firstParam, command.Param{Name: "p", Type: "array", Items: "integer"}},
	"tools.TOOL.params.NAME.allowDash":   {param("allowDash: true"), firstParam, command.Param{Name: "p", AllowDash: true}},
	"tools.TOOL.params.NAME.min":         {param("min: -1.5, type: number"), firstParam, command.Param{Name: "p", Type: "number", Min: new(-1.5)}},
	"tools.TOOL.params.NAME.max":         {param("max: 9, type: number"), firstParam, command.Param{Name: "p", Type: "number", Max: new(9.0)}},
	"tools.TOOL.params.NAME.pattern":     {param("pattern: ^a"), firstParam, command.Param{Name: "p", Pattern: "^a"}},

	"tools.TOOL.mcp":           {"tools: {t: {mcp: \"./bin/search --root ${HOME}/src ~/src\"}}", first(func(t Tool) any { return t.MCP.Argv }), []string{"/etc/th/bin/search", "--root", "/home/me/src", "/home/me/src"}},
	"tools.TOOL.prefix":        {"tools: {t: {mcp: [s], prefix: \"\"}}", first(func(t Tool) any { return t.MCP.Prefix }), ""},
	"tools.TOOL.keep":          {"tools: {t: {mcp: [s], keep: true, readOnly: true}}", firstKeep, supervisor.Keep{Shared: true}},
	"tools.TOOL.keep.idle":     {"tools: {t: {mcp: [s], keep: {idle: 1m}}}", firstKeep, supervisor.Keep{Idle: time.Minute}},
	"tools.TOOL.keep.maxCalls": {"tools: {t: {mcp: [s], keep: {maxCalls: 9}}}", firstKeep, supervisor.Keep{MaxCalls: 9}},
	"tools.TOOL.pin":           {"tools: {t: {mcp: [s], pin: false}}", first(func(t Tool) any { return t.MCP.Unpinned }), true},
	"tools.TOOL.startTimeout":  {"tools: {t: {mcp: [s], startTimeout: 55s, tools: {a: {mode: ask}}}}", first(func(t Tool) any { return []time.Duration{t.MCP.StartTimeout, t.Of("a").MCP.StartTimeout} }), []time.Duration{55 * time.Second, 55 * time.Second}},

	"tools.TOOL.tools.NAME.hidden":      {"tools: {t: {mcp: [s], tools: {a.b: {hidden: true}}}}", first(func(t Tool) any { return t.Of("a.b").Hidden }), true},
	"tools.TOOL.tools.NAME.title":       {"tools: {t: {mcp: [s], tools: {a: {title: T}}}}", first(func(t Tool) any { return t.Of("a").Title }), "T"},
	"tools.TOOL.tools.NAME.description": {"tools: {t: {mcp: [s], tools: {a: {description: D}}}}", first(func(t Tool) any { return t.Of("a").Description }), "D"},
}

const someHash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

func param(text string) string {
	return "tools: {t: {command: [echo, --, \"{p}\"], params: {p: {" + text + "}}}}"
}

// A ceiling over all tools is not held to what one call can have.
func TestACeilingOfManyNames(t *testing.T) {
	var names []string
	for i := range 150 {
		names = append(names, fmt.Sprintf("n%d.example:%d", i, 1000+i))
	}
	list := "[" + strings.Join(names, ", ") + "]"
	l := mustLoad(t, "limits: {network: "+list+"}\ntools: {search: {command: [bin/search], network: [\"n7.example:1007\"]}}")
	if got := l.Config.Ceiling.Grants; len(got) != len(names) {
		t.Errorf("%d grants", len(got))
	}
	if _, err := load(t, "tools: {search: {command: [bin/search], network: "+list+"}}"); err == nil || !strings.Contains(err.Error(), "that a call can have") {
		t.Errorf("a tool may have as many: %v", err)
	}
}
