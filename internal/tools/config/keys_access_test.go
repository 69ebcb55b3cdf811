package config

import (
	"fmt"
	"maps"
	"time"

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/access"
	"github.com/toolhost/toolhost/supervisor"
)

func profileOf(l *Loaded) any   { return l.Access[0].Profile }
func theirLimits(l *Loaded) any { return l.Access[0].Limits }
func theirQuota(l *Loaded) any  { return l.Access[0].Quota }

var calls = []access.Role{access.Call}

func init() { maps.Copy(hostCases, accessCases) }

var accessCases = map[string]hostCase{
	"publicUrl": {"publicUrl: https://Tools.example/", func(l *Loaded) any { return l.Daemon.PublicURL }, "https://tools.example"},
	"proxies":   {"proxies: [10.0.0.7, 10.1.0.0/16]", func(l *Loaded) any { return fmt.Sprint(l.Daemon.Proxies) }, "[10.0.0.7/32 10.1.0.0/16]"},
	"tls.cert":  {"tls: {cert: bin/grep, key: bin/search}", func(l *Loaded) any { return l.Daemon.TLSCert }, "/etc/th/bin/grep"},
	"tls.key":   {"tls: {cert: bin/grep, key: bin/search}\nlisten: 0.0.0.0:7443", func(l *Loaded) any { return l.Daemon.TLSKey }, "/etc/th/bin/search"},

	"access.ACCESS.uids":       {"access: {a: {uids: [7, 8]}}", profileOf, access.Profile{Name: "a", Roles: calls, UIDs: []uint32{7, 8}}},
	"access.ACCESS.group":      {"access: {a: {group: agents}}", func(l *Loaded) any { return l.Access[0].GroupName }, "agents"},
	"access.ACCESS.roles":      {"access: {a: {roles: [watch, approve]}}", profileOf, access.Profile{Name: "a", Roles: []access.Role{access.Watch, access.Approve}}},
	"access.ACCESS.tools":      {"access: {a: {tools: [git_*]}}", profileOf, access.Profile{Name: "a", Roles: calls, Tools: []string{"git_*"}}},
	"access.ACCESS.ask":        {"access: {a: {ask: [\"*\"]}}", profileOf, access.Profile{Name: "a", Roles: calls, Ask: []string{"*"}}},
	"access.ACCESS.deny":       {"access: {a: {deny: [x]}}", profileOf, access.Profile{Name: "a", Roles: calls, Deny: []string{"x"}}},
	"access.ACCESS.maxTimeout": {"access: {a: {maxTimeout: 5s}}", func(l *Loaded) any { return l.Access[0].Timeouts }, []budget.Ask{{Layer: budget.LayerClient, TimeoutUnset: true, Max: 5 * time.Second, Detail: "access.a"}}},

	"access.ACCESS.limits.memory":      {"access: {a: {limits: {memory: 8MiB}}}", theirLimits, supervisor.Limits{MemoryBytes: 8 << 20}},
	"access.ACCESS.limits.pids":        {"access: {a: {limits: {pids: 8}}}", theirLimits, supervisor.Limits{Pids: 8}},
	"access.ACCESS.limits.cpu":         {"access: {a: {limits: {cpu: 80%}}}", theirLimits, supervisor.Limits{CPUPercent: 80}},
	"access.ACCESS.limits.output":      {"access: {a: {limits: {output: 8KiB}}}", theirLimits, supervisor.Limits{OutputBytes: 8 << 10}},
	"access.ACCESS.limits.outputTotal": {"access: {a: {limits: {outputTotal: 8KiB}}}", theirLimits, supervisor.Limits{OutputTotalBytes: 8 << 10}},
	"access.ACCESS.limits.openFiles":   {"access: {a: {limits: {openFiles: 8}}}", theirLimits, supervisor.Limits{OpenFiles: 8}},
	"access.ACCESS.limits.cpuTime":     {"access: {a: {limits: {cpuTime: 8s}}}", theirLimits, supervisor.Limits{CPUTime: 8 * time.Second}},

	"access.ACCESS.quota.turns":   {"access: {a: {quota: {turns: 8}}}", theirQuota, access.Quota{Turns: 8}},
	"access.ACCESS.quota.running": {"access: {a: {quota: {running: 8}}}", theirQuota, access.Quota{Running: 8}},
	"access.ACCESS.quota.waiting": {"access: {a: {quota: {waiting: 8}}}", theirQuota, access.Quota{Waiting: 8}},
	"access.ACCESS.quota.streams": {"access: {a: {quota: {streams: 8}}}", theirQuota, access.Quota{Streams: 8}},
	"access.ACCESS.quota.bodies":  {"access: {a: {quota: {bodies: 8MiB}}}", theirQuota, access.Quota{BodyBytes: 8 << 20}},
	"access.ACCESS.quota.record":  {"access: {a: {quota: {record: 8MiB}}}", theirQuota, access.Quota{RecordBytes: 8 << 20}},
	"access.ACCESS.quota.memory":  {"access: {a: {quota: {memory: 64MiB}}}", theirQuota, access.Quota{MemoryBytes: 64 << 20}},
	"access.ACCESS.quota.cpu":     {"access: {a: {quota: {cpu: 150%}}}", theirQuota, access.Quota{CPUPercent: 150}},
}
