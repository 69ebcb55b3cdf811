package config

import (
	"strings"
	"testing"
)

// What would fail at the first call is told before.
func TestProgramsAndVariablesThatAreMissing(t *testing.T) {
	for text, want := range map[string]string{
		"tools: {a: {command: [nosuch, x]}}":                                        `tools.a.command: there is no command "nosuch" in PATH`,
		"tools: {a: {mcp: [nosuch, x], keep: true}}":                                `tools.a.mcp: there is no command "nosuch" in PATH`,
		"tools: {a: {mcp: [grep, x], keep: true}}":                                  "",
		"tools: {a: {command: 'nosuch | x', shell: true}}":                          "",
		"tools: {a: {command: [grep, x], env: {NONE: }}}":                           "tools.a.env.NONE: the variable NONE has no value",
		"tools: {a: {command: [grep, x], env: [NONE]}}":                             "the variable NONE has no value",
		"tools: {a: {command: [grep, x], env: {SOME: }}}":                           "",
		"tools: {a: {command: [grep, x], env: {NONE: ''}}}":                         "",
		"classes: {k: {env: {NONE: }}}\ntools: {a: {command: [grep, x], class: k}}": "classes.k.env.NONE: the variable NONE has no value",
		"tools: {a: {mcp: [bin/npx, -y, x], keep: true}}":                           "npx downloads what it runs, and the sandbox has no network",
		"tools: {a: {mcp: [bin/uvx, x], keep: true}}":                               "uvx downloads what it runs, and the sandbox has no network",
		"tools: {a: {mcp: [env, A=b, bin/uvx, x], keep: true}}":                     "uvx downloads what it runs",
		"tools: {a: {mcp: [grep, x]}}":                                              "tools.a.mcp: each call has a process of its own",
		"tools: {a: {mcp: [grep, x], keep: false}}":                                 "",
		"tools: {a: {mcp: [grep, x], data: true}}":                                  "",
		"tools: {a: {mcp: [grep, x], keep: {idle: 1m}}}":                            "",
		"tools: {a: {mcp: [toolhost, mcp], keep: false}}":                           "tools.a.mcp: each call has a process of its own, and another toolhost forgets",
		"tools: {a: {mcp: [bin/toolhost, mcp]}}":                                    "another toolhost forgets with it what it has asked",
		"tools: {a: {mcp: [toolhost, mcp], keep: true}}":                            "",
		"tools: {a: {mcp: [bin/uvx, x], keep: true, network: host}}":                "",
		"tools: {a: {mcp: [bin/uvx, x], keep: true, tier: none}}":                   "",
		// Workers are other machines. Of a server this one is asked what tools it has.
		"fleet: {listen: '127.0.0.1:1', local: never}\ntools: {a: {command: [nosuch, x]}}":          "",
		"fleet: {listen: '127.0.0.1:1', local: never}\ntools: {a: {command: [/nosuch, x]}}":         "",
		"fleet: {listen: '127.0.0.1:1', local: never}\ntools: {a: {mcp: [nosuch, x], keep: false}}": `no command "nosuch" in PATH`,
		"fleet: {listen: '127.0.0.1:1'}\ntools: {a: {command: [nosuch, x]}}":                        `no command "nosuch" in PATH`,
		"fleet: {listen: '127.0.0.1:1'}\ntools: {a: {command: [nosuch, x], where: {gpu: a100}}}":    "",
		"tools: {a: {command: [bin/npx, x]}}":                                                       "",
		// Many servers have one warning.
		"tools: {a: {mcp: [grep, x]}, b: {mcp: [grep, y], keep: true}, c: {mcp: [grep, z]}, d: {mcp: [grep]}}": "whatever its result says: say keep: true for a server that must remember, or keep: false; so it is with c, d",
	} {
		l, err := loadFiles(t, map[string]string{
			"/etc/th/toolhost.yaml": text, "/etc/th/bin/npx": "#!/bin/sh\n", "/etc/th/bin/uvx": "#!/bin/sh\n", "/etc/th/bin/grep": "#!/bin/sh\n", "/etc/th/bin/env": "#!/bin/sh\n", "/etc/th/bin/toolhost": "#!/bin/sh\n",
		}, "PATH=/etc/th/bin", "SOME=value")
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var got []string
		for _, warning := range l.Warnings {
			got = append(got, warning.String())
		}
		if all := strings.Join(got, "\n"); len(got) > 1 || (want == "") != (all == "") || !strings.Contains(all, want) {
			t.Errorf("%s: warnings %q, want %q", text, got, want)
		}
	}
}
