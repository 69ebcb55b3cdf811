// Package script has what the testscripts of several commands share.
package script

import (
	"errors"
	"os/exec"
	"regexp"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// Until runs a command line again and again until its stdout matches, for what another process does in its own time:
// until PATTERN toolhost ...
func Until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until PATTERN COMMAND ...")
	}
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	for end := time.Now().Add(wait.Bound); ; time.Sleep(20 * time.Millisecond) {
		ts.Check(ts.Exec(args[1], args[2:]...))
		if pattern.MatchString(ts.ReadFile("stdout")) {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("waited in vain for %s", args[0])
		}
	}
}

// Exits runs a command line and checks its exit status: exits 124 toolhost ...
func Exits(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ...")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("cannot run %s: %v", args[1], err)
	}
	if got := strconv.Itoa(code); got != args[0] {
		ts.Fatalf("exit status %s, want %s", got, args[0])
	}
}
