package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/client"
	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/internal/serve/daemon"
	"github.com/toolhost/toolhost/internal/tools/config"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// newDaemon runs one in this process, so that both sides of a contest pay for
// the same garbage.
func newDaemon(b *testing.B) *client.Client {
	b.Helper()
	dir := b.TempDir()
	file, socket := filepath.Join(dir, "toolhost.yaml"), filepath.Join(dir, "s")
	text := fmt.Sprintf("socket: {path: %s}\nturn: {maxCalls: 1000000}\ntools: {echo: {plugin: %s}}\n", socket, self)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	machine, err := config.ThisMachine()
	if err != nil {
		b.Fatal(err)
	}
	load := func() (*config.Loaded, error) { return config.Load(config.Options{Path: file, Machine: &machine}) }
	loaded, err := load()
	if err != nil {
		b.Fatal(err)
	}
	signals, ended := make(chan os.Signal, 1), make(chan error, 1)
	go func() {
		ended <- daemon.Run(daemon.Options{Loaded: loaded, Load: load, Machine: machine, State: filepath.Join(dir, "state"), Adapter: self, Signals: signals})
	}()
	c, err := client.New(client.Options{Socket: socket})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		c.Close()
		signals <- syscall.SIGTERM
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	for c.Ready(b.Context()) != nil {
		time.Sleep(time.Millisecond)
	}
	return c
}

// BenchmarkServedCall: the same sandboxed call through a daemon (HTTP on a unix
// socket), through a turn of the library with a journal, and bare. What it costs
// more than each of these is the median of differences between neighbours.
func BenchmarkServedCall(b *testing.B) {
	host, c := newHost(b), newDaemon(b)
	begun, err := c.Begin(b.Context(), api.TurnSpec{})
	if err != nil {
		b.Fatal(err)
	}
	t := journalledTurn(b, host)
	n := 0
	ways := []func(arguments []byte) error{
		func(arguments []byte) error {
			results, err := c.Run(b.Context(), begun.TurnID, []api.Call{{ID: strconv.Itoa(n), Tool: "echo", Arguments: arguments}})
			return failed(results, err)
		},
		func(arguments []byte) error {
			results, err := t.Run(b.Context(), []turn.Call{{ID: strconv.Itoa(n), Tool: "echo", Arguments: arguments}})
			return failed(results, err)
		},
		func(arguments []byte) error {
			return failed([]*api.Result{host.Call(b.Context(), supervisor.Request{Tool: supervisor.Tool{Path: self}, Arguments: arguments})}, nil)
		},
	}
	took := make([][]time.Duration, len(ways))
	for b.Loop() {
		n++
		for i := range ways {
			way := (n + i) % len(ways) // or one would always clean up after the same other
			began := time.Now()
			if err := ways[way](fmt.Appendf(nil, `{"text":"%d %d"}`, n, i)); err != nil { // no call is a repeat
				b.Fatal(err)
			}
			took[way] = append(took[way], time.Since(began))
			settle(host)
		}
	}
	served, journalled, bare := took[0], took[1], took[2]
	b.ReportMetric(micros(median(differences(served, journalled))), "over-turn-µs")
	b.ReportMetric(micros(median(differences(served, bare))), "over-bare-µs")
	b.ReportMetric(micros(median(served)), "served-µs")
	b.ReportMetric(micros(median(journalled)), "turn-µs")
	b.ReportMetric(micros(median(bare)), "bare-µs")
	b.ReportMetric(0, "ns/op")
}

func journalledTurn(b *testing.B, host *supervisor.Supervisor) *turn.Turn {
	kept, err := journal.Open(b.TempDir(), journal.Options{Ahead: true})
	if err != nil {
		b.Fatal(err)
	}
	t, err := turn.New(turn.Config{
		Start: turn.Supervised(host), Journal: journal.Turns{Journal: kept},
		Tool: func(name string) (turn.Tool, bool) {
			return turn.Tool{Name: name, Request: supervisor.Request{Tool: supervisor.Tool{Path: self}}}, true
		},
	}).Begin(turn.Spec{Budget: budget.TurnSpec{MaxCalls: 1_000_000}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		t.End()
		kept.Close()
	})
	return t
}

func failed(results []*api.Result, err error) error {
	if err == nil && !results[0].OK() {
		err = errors.New(results[0].Message)
	}
	return err
}

// differences must be taken before a median sorts the lists.
func differences(a, z []time.Duration) []time.Duration {
	list := make([]time.Duration, len(a))
	for i := range a {
		list[i] = a[i] - z[i]
	}
	return list
}
