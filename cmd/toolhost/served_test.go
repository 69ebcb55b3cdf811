package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/testscript"
)

// mcpCall calls a tool as an MCP client of a daemon does, and prints what a model
// reads of the result, and whether the client was told of progress: mcp-call
// SOCKET VERSION TOOL JSON TIMEOUTMS.
func mcpCall(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 5 {
		ts.Fatalf("usage: mcp-call SOCKET VERSION TOOL JSON TIMEOUTMS")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var told atomic.Int64
	client := mcpsdk.NewClient(&mcpsdk.Implementation{Name: "test"}, &mcpsdk.ClientOptions{
		ProgressNotificationHandler: func(context.Context, *mcpsdk.ProgressNotificationClientRequest) { told.Add(1) },
	})
	session, err := client.Connect(ctx, mcpAt(ts, args[0]), &mcpsdk.ClientSessionOptions{ProtocolVersion: args[1]})
	ts.Check(err)
	defer session.Close()
	p := &mcpsdk.CallToolParams{
		Name: args[2], Arguments: json.RawMessage(args[3]), Meta: mcpsdk.Meta{"dev.toolhost/timeoutMs": json.RawMessage(args[4])},
	}
	p.SetProgressToken("token")
	r, err := session.CallTool(ctx, p)
	ts.Check(err)
	for _, c := range r.Content {
		if text, ok := c.(*mcpsdk.TextContent); ok {
			fmt.Fprintln(ts.Stdout(), text.Text)
		}
	}
	fmt.Fprintf(ts.Stdout(), "error %v, told of progress %v\n", r.IsError, told.Load() > 0)
}

func mcpAt(ts *testscript.TestScript, socket string) mcpsdk.Transport {
	wires := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	ts.Defer(wires.CloseIdleConnections)
	return &mcpsdk.StreamableClientTransport{Endpoint: "http://localhost/mcp", HTTPClient: &http.Client{Transport: wires}, MaxRetries: -1}
}

// endsDaemon is the key of what ends a script's daemon.
type endsDaemon struct{}

// startDaemon starts toolhost serve with the script's configuration, on a socket
// whose path is put into $SOCKET (and that of TCP, where it has one, into $ADDRESS; its
// process into $DAEMON), and ends it with the script, or before the next one
// starts.
func startDaemon(ts *testscript.TestScript, neg bool, args []string) {
	before := ts.Value(endsDaemon{}).(*func())
	(*before)()
	if neg { // it only ends
		return
	}
	dir, err := os.MkdirTemp("", "toolhost-served-") // short enough for a socket
	ts.Check(err)
	socket := filepath.Join(dir, "s")
	state := filepath.Join(dir, "state")
	if len(args) > 0 {
		state = args[0]
	}
	cmd := exec.Command(os.Args[0], asToolhost, "serve", "--socket", socket, "--state", state)
	log := &lines{}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), "HOME="+ts.Getenv("HOME"), "TOOLHOST_CONFIG="+ts.Getenv("TOOLHOST_CONFIG"))
	ts.Check(cmd.Start())
	*before = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			ts.Logf("the daemon ended with %v:\n%s", err, log)
		}
		_ = os.RemoveAll(dir)
	})
	ts.Defer(*before)
	ts.Setenv("SOCKET", socket)
	ts.Setenv("DAEMON", strconv.Itoa(cmd.Process.Pid))
	config, _ := os.ReadFile(ts.Getenv("TOOLHOST_CONFIG"))
	overTCP := bytes.Contains(append([]byte("\n"), config...), []byte("\nlisten:"))
	for range 1000 {
		answers := ts.Exec("toolhost", "ps", "--socket", socket) == nil
		if tcp := tcpAddress.FindStringSubmatch(log.String()); tcp != nil {
			ts.Setenv("ADDRESS", tcp[1])
		} else if overTCP {
			continue // it is logged behind the first answer at times
		}
		if answers {
			return
		}
	}
	ts.Fatalf("the daemon is not ready:\n%s", log)
}
