package mcp

import (
	"io"
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
		"cannot open the log": `cannot open the log
--log-file string  for errors, "stderr" is the default
  -q  no fatal errors
the log goes to standard error`,
		"Usage: server FOLDER": "Usage: server FOLDER\nthe folder is shown",
		"goodbye":              "hello\ngoodbye",
	} {
		if got := likeliest(strings.Split(said, "\n")); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

// The reason stands before a usage text, however long that is, and what is kept of
// both is bounded.
func TestTheBeginningOfStderrIsKept(t *testing.T) {
	t.Parallel()
	by := newHearing(io.Discard)
	tail := &tail{by: by}
	flag := "  --error string  where errors go\n"
	for _, said := range []string{"Error: no con", "text is set\n", "Usage:\n", strings.Repeat(flag, 200), "the end\n"} {
		tail.keep([]byte(said))
	}
	got := tail.evidence()
	if !strings.HasPrefix(got, "; it wrote to stderr: Error: no context is set\nIts stderr:\nError: no context") || !strings.Contains(got, "\n[...]\n") || !strings.HasSuffix(got, flag+"the end") {
		t.Error(got)
	}
	if most := maxHeadBytes + maxTailBytes + 200; len(got) > most {
		t.Errorf("%d bytes, want at most %d", len(got), most)
	}
	tail.forget()
	tail.keep([]byte(strings.Repeat("x", maxHeadBytes+maxTailBytes)))
	if got := tail.text(); got != strings.Repeat("x", maxHeadBytes+maxTailBytes) {
		t.Errorf("what was kept whole is %q", got)
	}
}
