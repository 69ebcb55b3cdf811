package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/client"
)

// Our own isolation is the default policy, whatever the surface.
const ownIsolation = "all namespaces, minimal root, seccomp filter, Landlock, capabilities dropped, own user, cgroup with limits; timeout, journal"

// ours are a command and two plugins through the daemon, and a command of its own.
func ours(bin, dir string) ([]contestant, error) {
	socket, file := filepath.Join(dir, "s"), filepath.Join(dir, "toolhost.yaml")
	text := fmt.Sprintf(`socket: {path: %[1]s}
turn: {maxCalls: 1000000}
admission: {running: 64, queue: 64}
tools:
  nothing: {command: ["true", "--", "{text}"], description: Does nothing.}
  wordcount: {plugin: %[2]s}
  waiting: {plugin: %[2]s, prestart: 2}
`, socket, filepath.Join(bin, "wordcount"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	c, err := client.New(client.Options{Socket: socket})
	if err != nil {
		return nil, err
	}
	toolhost := filepath.Join(bin, "toolhost")
	daemon := func(string) []string {
		return []string{toolhost, "serve", "--config", file, "--state", filepath.Join(dir, "state"), "--log-level", "error"}
	}
	served := func(name, tool string) contestant {
		return contestant{
			ours: true, name: name, isolation: ownIsolation, daemon: daemon, ready: c.Ready, paced: true,
			run: func(ctx context.Context, n int, _ execute) error { return callOnce(ctx, c, tool, n) },
		}
	}
	waiting := served(nameWaiting, "waiting")
	waiting.await = func(ctx context.Context) error { return awaitPrestarted(ctx, c) }
	alone := command(nameExec, ownIsolation, toolhost, "exec", "--", "true")
	alone.ours = true
	return []contestant{served(nameCommand, "nothing"), served(namePlugin, "wordcount"), waiting, alone}, nil
}

const (
	nameCommand = "toolhost: command, daemon"
	namePlugin  = "toolhost: plugin, daemon"
	nameWaiting = "toolhost: plugin, prestarted"
	nameExec    = "toolhost exec"
)

// awaitPrestarted waits until the processes that are to wait for calls do.
func awaitPrestarted(ctx context.Context, c *client.Client) error {
	for {
		now, err := c.Running(ctx)
		if err != nil {
			return err
		}
		if len(now.Prestarted) == 1 && now.Prestarted[0].Waiting == now.Prestarted[0].Wanted {
			return nil
		}
		time.Sleep(10 * time.Millisecond) // the daemon's answers count as its CPU time
	}
}

// callOnce makes a call that no other has made, in a turn of its own.
func callOnce(ctx context.Context, c *client.Client, tool string, n int) error {
	results, err := c.RunTurn(ctx, api.TurnSpec{}, []api.Call{{ID: "1", Tool: tool, Arguments: fmt.Appendf(nil, `{"text":"%d"}`, n)}})
	if err == nil && !results[0].OK() {
		err = errors.New(results[0].Message)
	}
	return err
}
