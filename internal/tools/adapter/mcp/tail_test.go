package mcp

import (
	"strings"
	"testing"
)

// The line beside the error is the one that says why, whatever comes behind it.
func TestReasonOfServersThatFail(t *testing.T) {
	for want, said := range map[string]string{
		"Error: Cannot find module '/x/y.js'": `node:internal/modules/cjs/loader:1228
  throw err;
  ^

Error: Cannot find module '/x/y.js'
    at Function._resolveFilename (node:internal/modules/cjs/loader:1225:15)
    at wrapModuleError (node:internal/errors:1:1) {
  code: 'MODULE_NOT_FOUND',
  requireStack: []
}

Node.js v22.1.0`,
		"ModuleNotFoundError: No module named 'mcp'": `Traceback (most recent call last):
  File "/srv/error/server.py", line 1, in <module>
    import mcp
ModuleNotFoundError: No module named 'mcp'`,
		"npm error request to https://registry.example.org/x failed, reason: getaddrinfo EAI_AGAIN registry.example.org": `npm error code EAI_AGAIN
npm error syscall getaddrinfo
npm error request to https://registry.example.org/x failed, reason: getaddrinfo EAI_AGAIN registry.example.org
npm error A complete log of this run can be found in: /workspace/.npm/_logs/x.log`,
		"Error: unknown flag: --root": `Error: unknown flag: --root
Usage:
  server [flags] ERRORS`,
		"server: error: unrecognized arguments: --root": `usage: server [-h]
server: error: unrecognized arguments: --root`,
		"panic: no folder": `listening
panic: no folder

goroutine 1 [running]:
main.main()`,
		"Usage: server FOLDER": "Usage: server FOLDER\nthe folder is shown",
		"goodbye":              "hello\ngoodbye",
	} {
		if got := likeliest(strings.Split(said, "\n")); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}
