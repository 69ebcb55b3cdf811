package supervisor_test

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// What no message, environment or command line can hold is named before anything starts, and
// is not the tool's or the host's failure.
func TestTextsThatCannotBePassed(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	for want, change := range map[string]func(*supervisor.Request){
		`a Tool with a program of its own (Path "`:          func(r *supervisor.Request) { r.Command = &supervisor.Command{Argv: []string{"true"}} },
		`its ID "a\xff" is not UTF-8`:                       func(r *supervisor.Request) { r.ID = "a\xff" },
		`its Place.TurnID "t\xff" is not UTF-8`:             func(r *supervisor.Request) { r.Place.TurnID = "t\xff" },
		`the variable "A" of its Env contains a NUL`:        func(r *supervisor.Request) { r.Env = []string{"A=x\x00y"} },
		`an entry of its Env, "noequals", is not KEY=VALUE`: func(r *supervisor.Request) { r.Env = []string{"noequals"} },
		`an entry of its Env, "", is not KEY=VALUE`:         func(r *supervisor.Request) { r.Env = []string{"=x"} },
		`the argument "a\x00b" contains a NUL character`:    func(r *supervisor.Request) { r.Tool.Args = []string{"a\x00b"} },
		`the argument "echo\x00x" contains a NUL character, w`: func(r *supervisor.Request) {
			r.Tool, r.Command = supervisor.Tool{}, &supervisor.Command{Argv: []string{"echo\x00x"}}
		},
	} {
		r := request("echo", `{}`)
		change(&r)
		result := call(t, host, r)
		wantStatus(t, result, api.StatusStartFailed)
		if !strings.Contains(result.Message, want) || result.Retry.Retryable || result.Retry.SideEffects != "none" {
			t.Errorf("%s, retryable %t, side effects %s, want %q", result.Message, result.Retry.Retryable, result.Retry.SideEffects, want)
		}
	}
}
