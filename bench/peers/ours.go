package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/client"
)

// Our own isolation is the default policy, whatever the surface.
const ownIsolation = "all namespaces, minimal root, seccomp filter, Landlock, capabilities dropped, own user, cgroup with limits; timeout, journal"

// ours are a command and a plugin through the daemon, and a command of its own.
func ours(bin, dir string) ([]contestant, error) {
	socket, file := filepath.Join(dir, "s"), filepath.Join(dir, "toolhost.yaml")
	text := fmt.Sprintf(`socket: {path: %s}
turn: {maxCalls: 1000000}
admission: {running: 64, queue: 64}
tools:
  nothing: {command: ["true", "--", "{text}"], description: Does nothing.}
  wordcount: {plugin: %s}
`, socket, filepath.Join(bin, "wordcount"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	c, err := client.New(client.Options{Socket: socket})
	if err != nil {
		return nil, err
	}
	toolhost := filepath.Join(bin, "toolhost")
	daemon := []string{toolhost, "serve", "--config", file, "--state", filepath.Join(dir, "state"), "--log-level", "error"}
	call := func(tool string) func(context.Context, int) error {
		return func(ctx context.Context, n int) error { return callOnce(ctx, c, tool, n) }
	}
	return []contestant{
		{ours: true, name: "toolhost: command, daemon", isolation: ownIsolation, daemon: daemon, ready: c.Ready, ask: call("nothing")},
		{ours: true, name: "toolhost: plugin, daemon", isolation: ownIsolation, daemon: daemon, ready: c.Ready, ask: call("wordcount")},
		{ours: true, name: "toolhost exec", isolation: ownIsolation, argv: []string{toolhost, "exec", "--", "true"}},
	}, nil
}

// callOnce begins a turn, makes a call that no other has made, and ends the turn.
func callOnce(ctx context.Context, c *client.Client, tool string, n int) error {
	t, err := c.Begin(ctx, api.TurnSpec{})
	if err != nil {
		return err
	}
	results, err := c.Run(ctx, t.TurnID, []api.Call{{ID: "1", Tool: tool, Arguments: fmt.Appendf(nil, `{"text":"%d"}`, n)}})
	if err == nil && !results[0].OK() {
		err = errors.New(results[0].Message)
	}
	return errors.Join(err, c.End(ctx, t.TurnID))
}
