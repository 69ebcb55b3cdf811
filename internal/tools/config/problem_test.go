package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/text"
)

// mistakes are typical ones: the text, and what is said of it, from the line on.
var mistakes = []struct{ text, want string }{
	{"tool: {}", `1:1: tool: unknown key "tool": did you mean tools?`},
	{"zzz: 1", `1:1: zzz: unknown key "zzz": must be one of state, include`},
	{"memory: 1GiB", `1:1: memory: unknown key "memory": it belongs in limits, totals or tools.TOOL`},
	{"limits: {memroy: 1GiB}", `1:10: limits.memroy: unknown key "memroy": did you mean memory?`},
	{"limits: {MemroyMax: 1GiB}", `did you mean MemoryMax?`},
	{"limits:\n  memory: 1GiB\n  MemoryMax: 2GiB", `3:3: limits.MemoryMax: "MemoryMax" and "memory" of line 2 are the same limit: take one out`},
	{"limits:\n  memory: 1GiB\n  memory: 2GiB", `3:3: limits.memory: key "memory" stands twice, first in line 2: take one out`},
	{"limits: 5", `1:9: limits: "5" is not a mapping: write keys and values`},
	{"limits: {memory: lots}", `1:18: limits.memory: "lots" is not a size: write one such as 64MiB, or bytes`},
	{"limits: {memory: 1XiB}", `is not a size`},
	{"limits: {memory: -1}", `is not a size`},
	{"limits: {memory: 64KiB}", `1:18: limits.memory: memory limit 65536 is too small for any call: toolhost's own part of one needs 4MiB already`},
	{"tools: {t: {plugin: bin/search, memory: 4095KiB}}", `memory limit 4193280 is too small for any call`},
	{"access: {a: {limits: {memory: 1MiB}}}", `1:31: access.a.limits.memory: memory limit 1048576 is too small for any call`},
	{"access: {a: {limits: {output: 300MiB}}}", `limit output: 314572800 bytes would be held in memory`},
	{"tools: {t: {plugin: bin/search, network: {grants: [a.example], ask: true, grants: [b.example]}}}", `1:75: tools.t.network.grants: key "grants" stands twice, first in line 1: take one out`},
	{"tools: {t: {plugin: bin/search, network: [{name: a.example, ports: [443], ports: [22]}]}}", `1:75: tools.t.network[0].ports: key "ports" stands twice, first in line 1: take one out`},
	{"totals: {memory: 1MiB}", `1:18: totals.memory: memory limit 1048576 is too small for any call`},
	{"limits: {memory: 4k}", `memory limit 4096 is too small for any call`},
	{"limits: {memory: true}", `"true" is not a size`},
	{"limits: {memory: [1]}", `a list is not a size`},
	{"limits: {memory: }", `1:17: limits.memory: "memory" has no value: give size, or infinity, or leave it out`},
	{"limits: {output: infinity}", `may not be unlimited`},
	{"limits: {output: 0}", `1:18: limits.output: "0" is not positive: write a size such as 64MiB, or leave it out`},
	{"limits: {output: 2000000TiB}", `is out of range: write a size such as 64MiB`},
	{"limits: {output: 300MiB}", `limit output: 314572800 bytes would be held in memory`},
	{"limits: {pids: 1.5}", `"1.5" is not a number: write one in plain digits`},
	{"limits: {pids: -1}", `"-1" is not positive: write 1 or more, or leave it out; no limit is written infinity`},
	{"limits: {pids: 99999999999}", `"99999999999" is out of range: write a number up to 2147483647`},
	{"limits: {pids: 0x10}", `"0x10" is not a number`},
	{"limits: {pids: 5000000}", `pids limit`},
	{"limits: {cpu: 2}", `"2" has no %: write 200% for so many CPUs, or 2% for that part of one`},
	{"limits: {cpu: 150}", `"150" has no %: write 150%`},
	{"limits: {cpuWeight: 10001}", `is not a weight: write a number from 1 to 10000`},
	{"classes: {c: {prestart: 65}}", `"65" is too many: write a number from 1 to 64`},
	{"limits: {cpuTime: 0s}", `is not positive`},
	{"limits: {tmp: 400MiB}", `1:15: limits.tmp: workspace 134217728, /tmp 419430400 and /dev/shm 16777216 bytes are together more than half`},
	{"limits: {ioMax: {sda: {read: 1}}}", `1:18: limits.ioMax.sda: "sda" is not a block device`},
	{"limits: {ioMax: {/dev/nosuch: {read: 1}}}", `"/dev/nosuch" cannot be looked at`},
	{"limits: {ioMax: {\"0:0\": {read: 1}}}", `IO limit for device 0:0 names no block device`},
	{"totals: {pids: 5000000}", `pids limit 5000000 is out of range`},
	{"totals: {output: 1MiB}", `unknown key "output": it belongs in limits`},
	{"kill: {grace: 31s}", `1:15: kill.grace: "31s" is over the ceiling of 30s: write at most 30s`},
	{"kill: {grace: -1s}", `is negative: write 0s to kill at once`},
	{"kill: {grace: infinite}", `is over the ceiling of 30s`},
	{"kill: {grace: 2}", `"2" has no unit: write 2s for seconds, 2ms for milliseconds`},
	{"stream: {gap: infinite}", `"infinite" may not be infinite: write a duration such as 30s`},
	{"tools: {t: {plugin: bin/search, stream: {gap: infinite}}}", `1:47: tools.t.stream.gap: "infinite" may not be infinite: write a duration such as 30s`},
	{"tools: {t: {plugin: bin/search, env: {PATH: /x}}}", `1:39: tools.t.env.PATH: "PATH" is set by toolhost for every tool`},
	{"tools: {t: {plugin: bin/search, env: [HOME]}}", `"HOME" is set by toolhost for every tool`},
	{"classes: {c: {env: {GOMAXPROCS: 2}}}", `"GOMAXPROCS" is set by toolhost for every tool`},
	{"tools: {t: {plugin: bin/search, env: {TOOLHOST_PLUGIN: x}}}", `"TOOLHOST_PLUGIN" belongs to the handshake`},
	{"tools: {t: {plugin: bin/search, secrets: {PLUGIN_MIN_PORT: {secret: s}}}}", `"PLUGIN_MIN_PORT" belongs to the handshake`},
	{"timeouts: {tool_cal: {max: 1h}}", `1:12: timeouts.tool_cal: "tool_cal" is not known: did you mean tool_call?`},
	{"timeouts: {tool_call: {default: infinite}}", `may not be infinite here: only a tool's own entry may lift its timeout`},
	{"timeouts: {tool_call: {max: infinite}}", `may not be infinite`},
	{"timeouts: {tool_call: {min: 2h}}", `min 2h is above max 1h of tool_call`},
	{"timeouts: {tool_call: {max: 10ms}}", `max 10ms is below min 1s of tool_call`},
	{"timeouts: {tool_call: {max: 10s, default: 20s}}", `1:43: timeouts.tool_call.default: default 20s is above max 10s`},
	{"timeouts: {approval: infinite}", `1:22: timeouts.approval: "infinite" may not be infinite here`},
	{"timeouts: {approval: 0s}", `1:22: timeouts.approval: "0s" is not positive`},
	{"timeouts: {aproval: 5s}", `"aproval" is not known: did you mean approval?`},
	{"timeouts: {password: {soft: 5s}}", `a human has no soft budget: take it out`},
	{"timeouts: {confirm: {max: 10s, default: 20s}}", `default 20s is above max 10s`},
	{"tools: {t: {plugin: bin/search, timeouts: {tool_call: 5s}}}", `"tool_call" is not known`},
	{"tools: {t: {plugin: bin/search, timeouts: {confirm: {max: 10s, default: 20s}}}}", `default 20s is above max 10s`},
	{"timeouts: {tool_call: {min: 10s, default: 5s}}", `default 5s is below min 10s`},
	{"classes: {c: {timeout: infinite}}", `1:24: classes.c.timeout: "infinite" may not be infinite here`},
	{"classes: {c: {plugin: x}}", `unknown key "plugin"`},
	{"turn: {maxCalls: 0}", `is not positive`},
	{"turn: {deadline: 5s}", `1:18: turn.deadline: turn.deadline 5s less turn.reserve 10s (the default) leaves no call the second that it needs: write a longer deadline, or a reserve such as 1.25s`},
	{"turn: {deadline: 10.9s}", `write a longer deadline, or a reserve such as 2.72s`},
	{"turn: {deadline: 1m, reserve: 60s}", `1:31: turn.reserve: turn.deadline 1m less turn.reserve 1m leaves no call the second that it needs: write a longer deadline, or a reserve such as 15s`},
	{"turn: {deadline: 1s, reserve: 1ms}", `needs: write a longer deadline`},
	{"timeout: 5s", `1:1: timeout: unknown key "timeout": for all tools it is timeouts.tool_call.default, for some it belongs in tools.TOOL or classes.CLASS`},
	{"tools: {t: {plugin: bin/search, limits: {memory: 1GiB}}}", `1:33: tools.t.limits: unknown key "limits": write what is in it one level higher, without it`},
	{"tools: {t: {plugin: bin/search, timeouts: 5s}}", `tools.t.timeouts: "5s" is not a mapping: write QUESTION: value`},
	{"cgroupParent: ../x", `1:15: cgroupParent: "../x" is not a path of a cgroup: write it from the root of the hierarchy, such as /agents.slice`},
	{"cgroupParent: /a/../b", `"/a/../b" is not a plain path of a cgroup: write "/b"`},
	{"cgroupParent: /..", `write "/"`},
	{"dirs: {spill: /var/nosuch}", `1:15: dirs.spill: "/var/nosuch" names /var/nosuch, which does not exist: make it, or correct the path`},
	{"dirs: {spill: secrets/api}", `which is not a folder`},
	{"state: 12", `1:8: state: "12" is not a path: quote it, or write ./12`},
	{"journal: {maxAge: forever}", `is not a duration`},
	{"journal: {maxAge: 99999999h}", `"99999999h" is out of range: write 2562047h at most`},
	{"include: conf.d", `1:10: include: "conf.d" is not a list of paths`},
	{"include: [\"${NO}\"]", `needs the variable NO`},
	{"state: ''", `is not a path`},
	{"state: \"${EMPTY:-}\"", `is an empty path when its variables are replaced`},
	{"state: \"a\\nb\"", `holds a character that no path should`},
	{"include: [nosuch.yaml]", `1:11: include[0]: the file "/etc/th/nosuch.yaml" cannot be read: file does not exist: make it, or correct the path`},
	{"include: ['[']", `is not a pattern`},
	{"secrets: {s: {}}", `1:11: secrets.s: secret "s" has no source: give file or credential`},
	{"secrets: {s: {file: secrets/api, credential: db}}", `has a file and a credential`},
	{"secrets: {s: {file: secrets/long}}", `1:21: secrets.s.file: the secret's file has 16387 bytes, and a secret may have 16384: name a shorter one`},
	{"secrets: {s: {file: nosuch}}", `names /etc/th/nosuch, which does not exist`},
	{"secrets: {s: {credential: ../x}}", `is not a name of a credential`},
	{"tools: {a b: {plugin: bin/search}}", `1:9: tools."a b": "a b" is not a name that every model API takes`},
	{"tools: {session_status: {plugin: bin/search}}", `is the name of a tool of toolhost's own`},
	{"tools: {" + strings.Repeat("x", 65) + ": {plugin: bin/search}}", `is not a name that every model API takes`},
	{"tools: {t: }", `1:9: tools.t: tool "t" has nothing to run: set one of plugin, command, mcp`},
	{"tools: {t: {plugin: bin/search, mcp: [x]}}", `tool "t" has plugin and mcp: leave only one of them`},
	{"tools: {t: {plugin: bin/nosuch}}", `1:21: tools.t.plugin: "bin/nosuch" names /etc/th/bin/nosuch, which does not exist`},
	{"tools: {t: {plugin: secrets/api}}", `which is not executable: chmod +x it`},
	{"tools: {t: {plugin: bin}}", `which is neither a program nor a pack: name an executable file, or what toolsdk pack has made`},
	{"tools: {t: {plugin: ~you/x}}", `begins with the home of another user`},
	{"tools: {t: {plugin: bin/search, class: hevy}}\nclasses: {heavy: {}}", `1:40: tools.t.class: unknown class "hevy": did you mean heavy?`},
	{"tools: {t: {plugin: bin/search, class: c}}", `there are no classes`},
	{"tools: {t: {plugin: bin/search, keep: true}}", `1:33: tools.t.keep: "keep" is for tools with mcp, and this one has plugin: take it out`},
	{"tools: {t: {plugin: bin/search, params: {}}}", `"params" is for tools with command`},
	{"tools: {t: {mcp: [x], startTimeout: 56s}}", `is over the ceiling of 55s: write at most 55s`},
	{"tools: {t: {mcp: [x], startTimeout: infinite}}", `is over the ceiling of 55s`},
	{"tools: {t: {mcp: [x], startTimeout: 0s}}", `is not positive`},
	{"tools: {t: {mcp: [x], startTimeout: 20}}", `has no unit: write 20s`},
	{"tools: {t: {command: [x], startTimeout: 20s}}", `"startTimeout" is for tools with mcp`},
	{"tools: {t: {mcp: [x], args: [y]}}", `"args" is for tools with plugin`},
	{"tools: {t: {plugin: bin/search, timeout: 5s, maxTimeout: 2s}}", `timeout 5s is above maxTimeout 2s`},
	{"tools: {t: {plugin: bin/search, timeout: 5s, minTimeout: 9s}}", `timeout 5s is below minTimeout 9s`},
	{"tools: {t: {plugin: bin/search, minTimeout: 5s, maxTimeout: 2s}}", `minTimeout 5s is above maxTimeout 2s`},
	{"tools: {t: {plugin: bin/search, timeout: infinite, maxTimeout: 2s}}", `timeout infinite and maxTimeout 2s contradict`},
	{"tools: {t: {plugin: bin/search, timeout: 0s}}", `is not positive`},
	{"tools: {t: {plugin: bin/search, mode: maybe}}", `is unknown: must be one of allow, ask, deny`},
	{"tools: {t: {plugin: bin/search, strict: yes}}", `"yes" is neither true nor false: write one of them, without quotes`},
	{"tools: {t: {plugin: bin/search, strict: 'true'}}", `is neither true nor false`},
	{"tools: {t: {plugin: bin/search, readOnly: true, write: [~/src]}}", `readOnly and write [/home/me/src] contradict`},
	{"tools: {t: {plugin: bin/search, readOnly: true, data: true}}", `1:55: tools.t.data: data and readOnly contradict one another, for what changes nothing has nothing to keep: take one of them out`},
	{"tools: {t: {plugin: bin/search, readOnly: true, destructive: true}}", `readOnly and destructive contradict`},
	{"tools: {t: {plugin: bin/search, tier: none, read: [~/src]}}", `1:51: tools.t.read: read means nothing with tier none`},
	{"tools: {t: {plugin: bin/search, data: true, workspace: 5MiB}}", `workspace limits nothing with data`},
	{"tools: {t: {plugin: bin/search, read: ~/src}}", `is not a list: write [~/src]`},
	{"tools: {t: {plugin: bin/search, read: [~/nosuch]}}", `1:40: tools.t.read[0]: "~/nosuch" names /home/me/nosuch, which does not exist`},
	{"classes: {c: {read: [~/nosuch]}}", `1:22: classes.c.read[0]: "~/nosuch" names /home/me/nosuch, which does not exist`},
	{"tools: {t: {plugin: bin/search, read: [/tmp]}}", `"/tmp" cannot be granted: every call has its own /tmp`},
	{"tools: {t: {plugin: bin/search, dir: ~/notes.txt}}", `which is not a folder`},
	{"tools: {t: {plugin: bin/search, dir: ~/src}}", `dir /home/me/src is not granted: name it in read or write, too`},
	{"tools: {t: {plugin: bin/search, dir: ~/src, read: [/srv]}}", `dir /home/me/src is not granted`},
	{"tools: {t: {plugin: bin/search, title: 5}}", `"5" is not text: write it in quotes`},
	{"tools: {t: {plugin: bin/search, env: [[a]]}}", `a list is not a variable: write NAME=value`},
	{"tools: {t: {plugin: bin/search, args: [[a]]}}", `is not text`},
	{"tools: {t: {plugin: bin/search, args: [~you, \"${\"]}}", `has ${ without }`},
	{"tools: {t: {command: [echo, --, \"{x}\"], params: {x: {default: .inf}}}}", `is not a JSON number`},
	{"tools: {t: {command: [echo, --, \"{x}\"], params: {x: {enum: []}}}}", `is not a list with values`},
	{"tools: {t: {command: [echo, --, \"{x}\"], params: {x: {min: a}}}}", `is not a number`},
	{"tools: {t: {command: [echo, --, \"{x}\"], params: {1x: {}}}}", `is not a name of an argument`},
	{"tools: {t: {plugin: bin/search, require: [landlok]}}", `did you mean landlock?`},
	{"tools: {t: {plugin: bin/search, env: [1A=2]}}", `is not a name of a variable`},
	{"tools: {t: {plugin: bin/search, env: {A: [1]}}}", `is not text`},
	{"tools: {t: {plugin: bin/search, env: {A: \"${NOPE}\"}}}", `needs the variable NOPE, which is not set: set it, or write ${NOPE:-default}`},
	{"tools: {t: {plugin: bin/search, env: {A: \"${NOPE\"}}}", `has ${ without }`},
	{"tools: {t: {plugin: bin/search, env: {A: \"${a b}\"}}}", `which names no variable`},
	{"tools: {t: {plugin: bin/search, secrets: {K: {secret: a}}}}", `1:55: tools.t.secrets.K.secret: unknown secret "a"`},
	{"tools: {t: {plugin: bin/search, secrets: {K: {as: file}}}}", `the variable K is given no secret`},
	{"tools: {t: {plugin: bin/search, env: [K=1], secrets: {K: {secret: a}}}}\nsecrets: {a: {file: secrets/api}}", `is set by env and by secrets`},
	{"tools: {t: {plugin: bin/search, sha256: abc}}", `is not a SHA-256`},
	{"tools: {t: {command: []}}", `is not a command`},
	{"tools: {t: {command: [bash, -c, {code}]}}", `1:33: tools.t.command[2]: a mapping is not a word: quote`},
	{"tools: {t: {command: ls | wc}}", `has '|', which means something to a shell`},
	{"tools: {t: {command: ls $HOME/x}}", `1:22: tools.t.command: "ls $HOME/x" has $HOME, which means something to a shell, and none is used: write ${HOME} for a variable of toolhost's environment, quote it, or set shell: true`},
	{"tools: {t: {command: FOO=1 echo x}}", `"FOO=1 echo x" begins with FOO=, which means something to a shell, and none is used: set the variable with env, or write env before it`},
	{"tools: {t: {mcp: FOO=1 node x}}", `begins with FOO=`},
	{"tools: {t: {command: \"echo 'a\"}}", `has an unterminated quote (')`},
	{"tools: {t: {command: [ls, -l], shell: true}}", `shell: true takes the command as one text, not as a list`},
	{"tools: {t: {command: [python3, -c, \"print({x})\"]}}", `1:36: tools.t.command[2]: "print({x})" puts a value into code for python`},
	{"tools: {t: {command: [echo, \"{x}\"], params: {x: {type: text}}}}", `is unknown`},
	{"tools: {t: {command: [echo, --, \"{x}\"], params: {x: {pattern: \"(\"}}}}", `tools.t.params.x.pattern: "(" is not a regular expression`},
	{"tools: {t: {command: [echo], params: {x: {}}}}", `1:42: tools.t.params.x: it is declared, but neither the command nor stdin uses it`},
	{"tools: {t: {command: [echo], exitCodes: {256: ok}}}", `"256" is not an exit status`},
	{"tools: {t: {mcp: [x], prefix: 'a b'}}", `is not a prefix of names`},
	{"tools: {t: {mcp: [x], keep: true, tools: {a: {memory: 1GiB}}}}", `memory belongs to the process, which is kept for all tools of the server`},
	{"state: &x /a", `1:8: "&" is a YAML anchor, which is not taken`},
	{"state: *x", `is a YAML alias, which is not taken`},
	{"tools: {t: {command: *.sh}}", `is a YAML alias, which is not taken`},
	{"include: [*.yaml]", `is a YAML alias, which is not taken: write the value out, use a class, or quote it if it is text`},
	{"a: {<<: 1}", `is a YAML merge key`},
	{"a: !!str 1", `is a YAML tag`},
	{"? a\n: b", `is a complex YAML key`},
	{"%YAML 1.2\n---\na: 1", `is a YAML directive`},
	{"state: /a\n---\nstate: /b", `2:1: a second YAML document begins here`},
	{"# x\n---\nstate: /a\n---\nstate: /b", `4:1: a second YAML document begins here`},
	{"limits:\n\tmemory: 1", `2:1: found character '	' that cannot start any token: indent with spaces`},
	{"limits: {memory: 1", `could not find flow mapping end token`},
	{"state: a: b", `quote text that holds ": "`},
	{"- a", `is not a mapping`},
	{"state: \"\\0\"", `holds a NUL character`},
	{"state: \xff", `the line is not UTF-8`},
	{"state: " + strings.Repeat("[", 30) + strings.Repeat("]", 30), `the nesting is deeper than 24`},
}

// An anchor and its aliases hide no other mistake, and make none.
func TestAnchorsHideNothing(t *testing.T) {
	_, err := load(t, `
classes:
  a: &base {timeout: 1m, memory: lots}
  b: {<<: *base, timeout: 5}
tools:
  t: {plugin: &bin bin/search, class: c, read: &list [~/src]}
  u: {plugin: *bin, read: *list, dir: ~/src, pids: 0}
  v:
    <<: [{plugin: bin/search}, *base]
    env: {A: &n 1, B: *n}
`)
	var got []string
	for _, p := range problemsOf(t, err) {
		got = append(got, fmt.Sprintf("%d %s", p.Line, text.Cut(p.Message, 24)))
	}
	want := []string{
		`3 "&" is a YAML anchor, w…`, `3 "lots" is not a size: w…`, `4 "<<" is a YAML merge ke…`, `4 "*" is a YAML alias, wh…`, `4 "5" has no unit: write …`,
		`6 "&" is a YAML anchor, w…`, `6 unknown class "c": did …`, `6 "&" is a YAML anchor, w…`,
		`7 "*" is a YAML alias, wh…`, `7 "*" is a YAML alias, wh…`, `7 "0" is not positive: wr…`,
		`9 "<<" is a YAML merge ke…`, `9 "*" is a YAML alias, wh…`, `10 "&" is a YAML anchor, w…`, `10 "*" is a YAML alias, wh…`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// However much aliases would stand for, no more than a file may have is read.
func TestAliasesAreBounded(t *testing.T) {
	text := "a0: &a0 [1, 2, 3, 4, 5, 6, 7, 8, 9]\n"
	for i := 1; i < 15; i++ {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), ", "))
	}
	if _, err := load(t, text+"zzz: 1"); err == nil || strings.Contains(err.Error(), "zzz") {
		t.Errorf("%v", err)
	}
}

func TestMistakes(t *testing.T) {
	for _, m := range mistakes {
		_, err := load(t, m.text)
		if err == nil {
			t.Errorf("nothing is wrong with %q", m.text)
			continue
		}
		list := problemsOf(t, err)
		if got := list.Error(); len(list) != 1 || !strings.Contains(got, strings.ReplaceAll(m.want, "\t", " ")) {
			t.Errorf("%q gives %d problems:\n  %s\nwant %s", m.text, len(list), got, m.want)
		}
		if strings.Contains(list.Error(), "in Go") {
			t.Errorf("it speaks of Go: %v", list)
		}
		checkForm(t, list)
	}
}

// checkForm: each problem has a place, is one line, and says what to do.
func checkForm(t *testing.T, list Problems) {
	t.Helper()
	for _, p := range list {
		if p.File == "" || p.Line == 0 != (p.Column == 0) || p.Message == "" {
			t.Errorf("a problem without a place or message: %+v", p)
		}
		if strings.ContainsAny(p.String(), "\n\x1b\x00") {
			t.Errorf("not one line: %q", p)
		}
		if lines := strings.Split(p.Long(), "\n"); p.Line > 0 && (len(lines) != 3 || !strings.HasSuffix(lines[2], "^")) {
			t.Errorf("no source line: %q", p.Long())
		}
	}
}

// Ten mistakes give ten problems at once, in the order of the lines.
func TestAllAtOnce(t *testing.T) {
	text := `limits: {memroy: 1GiB}
kill: {grace: 1m}
timeouts: {tool_call: {min: 2h}}
classes: {heavy: {memory: 4 Gigs}}
tools:
  a b: {plugin: bin/search}
  b: {plugin: bin/nosuch}
  c: {plugin: bin/search, class: hevy}
  d: {plugin: bin/search, keep: true}
  e: {command: [python3, -c, "print({x})"]}
  f: {plugin: bin/search, tmp: 1GiB}
`
	_, err := load(t, text)
	list := problemsOf(t, err)
	for i, line := range []int{1, 2, 3, 4, 6, 7, 8, 9, 10, 11} {
		if i >= len(list) || list[i].Line != line {
			t.Fatalf("problem %d is not in line %d:\n%s", i+1, line, err)
		}
	}
	if len(list) != 10 {
		t.Errorf("%d problems, want 10:\n%s", len(list), err)
	}
	checkForm(t, list)
}

// A workspace that persists takes none of the memory that /tmp counts to.
func TestTmpBesideData(t *testing.T) {
	const sizes = "{plugin: bin/search, memory: 1GiB, tmp: 400MiB, data: %t}"
	mustLoad(t, "tools: {t: "+fmt.Sprintf(sizes, true)+"}")
	if _, err := load(t, "tools: {t: "+fmt.Sprintf(sizes, false)+"}"); err == nil {
		t.Error("no error")
	}
}

// What a variable is given may be a secret.
func TestProblemsDoNotQuoteVariables(t *testing.T) {
	_, err := load(t, "tools: {t: {plugin: bin/search, env: {A: \"hunter2 ${NOPE}\"}}}")
	if got := err.Error(); strings.Contains(got, "hunter2") || !strings.Contains(got, "tools.t.env.A: the value needs the variable NOPE") {
		t.Error(got)
	}
}

func TestLongForm(t *testing.T) {
	_, err := load(t, "# é\n\"limits\": {x: 'é', memroy: 1GiB}\n")
	list := problemsOf(t, err)
	want := "/etc/th/toolhost.yaml:2:20: limits.memroy: unknown key \"memroy\": did you mean memory?\n" +
		"    2 | \"limits\": {x: 'é', memroy: 1GiB}\n" +
		"      |                    ^"
	if got := list[1:].Long(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestLongLinesAreCut(t *testing.T) {
	_, err := load(t, "tools: {t: {plugin: bin/search, title: \""+strings.Repeat("y", 500)+"\", zz: 1}}")
	lines := strings.Split(problemsOf(t, err)[0].Long(), "\n")
	if i := strings.IndexByte(lines[2], '^'); len(lines[1]) > 150 || lines[1][i:i+2] != "zz" {
		t.Errorf("the caret is not under the key:\n%s\n%s", lines[1], lines[2])
	}
}

func TestProblemsAreBounded(t *testing.T) {
	var text strings.Builder
	for i := range 500 {
		fmt.Fprintf(&text, "key%d: 1\n", i)
	}
	_, err := load(t, text.String())
	list := problemsOf(t, err)
	if len(list) != maxProblems+1 || !strings.Contains(list[maxProblems].Message, "and 400 more problems") {
		t.Errorf("%d problems, the last is %s", len(list), list[len(list)-1])
	}
}

func TestControlCharactersAreNotShown(t *testing.T) {
	_, err := load(t, "limits: {memory: \"\\e[31m\u202e\"}\n\"\\e]0;x\\a\": 1")
	checkForm(t, problemsOf(t, err))
}
