package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/plugin/proto/v1/toolgrpc"
)

// broken is a plugin as somebody might write it without the SDK, sound but for
// one fault.
type broken struct {
	goplugin.NetRPCUnsupportedPlugin
	toolgrpc.UnimplementedToolServer
	fault     string
	running   atomic.Int32
	told      atomic.Bool // by SIGTERM
	described atomic.Bool
	cancel    chan struct{}
}

// serveBroken never returns.
func serveBroken(fault string) {
	dir := os.Getenv(goplugin.EnvUnixSocketDir)
	switch {
	case fault == "runs-by-hand" && dir == "":
		time.Sleep(time.Minute)
	case fault == "silent-by-hand" && dir == "":
		os.Exit(0)
	case fault == "traceback-by-hand" && dir == "":
		fmt.Fprintf(os.Stderr, "Traceback (most recent call last):\n  File \"tool.py\", line 3, in <module>\nKeyError: 'PLUGIN_UNIX_SOCKET_DIR'\n")
		os.Exit(1)
	case fault == "version":
		fmt.Println("1|99|unix|" + dir + "/x|grpc")
	case fault == "early":
		fmt.Println("Loading the model ...")
	case fault == "mute":
		time.Sleep(time.Minute)
	case fault == "litter":
		_ = os.WriteFile(dir+"/log", nil, 0o600)
	case fault == "deaf":
		signal.Ignore(syscall.SIGTERM)
	}
	b := &broken{fault: fault, cancel: make(chan struct{}, 1)}
	if fault != "deaf" {
		go b.heedSIGTERM()
	}
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: goplugin.HandshakeConfig{ProtocolVersion: 1, MagicCookieKey: "TOOLHOST_PLUGIN", MagicCookieValue: "toolhost.plugin.v1"},
		Plugins:         goplugin.PluginSet{"tool": b},
		Logger:          hclog.NewNullLogger(),
		GRPCServer:      goplugin.DefaultGRPCServer,
	})
	os.Exit(0)
}

// heedSIGTERM takes it for a cancel.
func (b *broken) heedSIGTERM() {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	for range told {
		if b.fault == "exits-when-told" {
			os.Exit(0)
		}
		b.told.Store(true)
		_, _ = b.Cancel(context.Background(), nil)
	}
}

func (b *broken) GRPCServer(_ *goplugin.GRPCBroker, s *grpc.Server) error {
	toolgrpc.RegisterToolServer(s, b)
	return nil
}

func (b *broken) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, nil
}

const (
	brokenInput  = `{"type":"object","properties":{"text":{"type":"string"},"work":{"type":"boolean"},"flood":{"type":"boolean"}},"required":["text"]}`
	brokenOutput = `{"type":"object","properties":{"length":{"type":"integer"}},"required":["length"],"additionalProperties":false}`
)

func (b *broken) Describe(context.Context, *pluginv1.DescribeRequest) (*pluginv1.DescribeResponse, error) {
	say := &pluginv1.ToolDescription{Name: "say", Description: "Says it.", InputSchema: []byte(brokenInput), OutputSchema: []byte(brokenOutput)}
	d := &pluginv1.DescribeResponse{Tools: []*pluginv1.ToolDescription{say}}
	b.described.Store(true)
	switch b.fault {
	case "fickle":
		d.Version = strconv.FormatInt(time.Now().UnixNano(), 10)
	case "empty":
		d.Tools = nil
	case "duplicate":
		d.Tools = append(d.Tools, say)
	case "name":
		say.Name = "say it"
	case "reserved":
		say.Name = reservedName
	case "wordy":
		say.Title = strings.Repeat("Say it ", 200)
	case "nameless":
		say.Description = ""
	case "schema":
		say.InputSchema = []byte(`{"type":12}`)
	case "schema-list":
		say.InputSchema = []byte(`{"type":"array"}`)
	case "schema-output":
		say.OutputSchema = []byte(`{"type":`)
	case "claims":
		say.Annotations = &pluginv1.Annotations{ReadOnly: new(true), Destructive: new(true)}
	case "timeout-argument":
		say.TimeoutArgument = "timeout_ms"
	case "needs-files":
		if _, err := os.ReadFile(os.Args[3]); err != nil {
			return nil, status.Error(codes.FailedPrecondition, err.Error())
		}
	case "hangs":
		time.Sleep(time.Minute)
	}
	return d, nil
}

func (b *broken) Cancel(context.Context, *pluginv1.CancelRequest) (*pluginv1.CancelResponse, error) {
	select {
	case b.cancel <- struct{}{}:
	default:
	}
	return &pluginv1.CancelResponse{}, nil
}

func (b *broken) Answer(context.Context, *pluginv1.AnswerRequest) (*pluginv1.AnswerResponse, error) {
	return &pluginv1.AnswerResponse{}, nil
}

func (b *broken) Acknowledge(context.Context, *pluginv1.AcknowledgeRequest) (*pluginv1.AcknowledgeResponse, error) {
	if b.fault == "unimplemented" {
		return nil, status.Error(codes.Unimplemented, "later")
	}
	return &pluginv1.AcknowledgeResponse{}, nil
}

type brokenArguments struct {
	Text        string
	Work, Flood bool
}

func (b *broken) Call(request *pluginv1.CallRequest, s toolgrpc.Tool_CallServer) error {
	c := &brokenCall{broken: b, stream: s}
	switch {
	case b.described.Load() && b.fault == "describes-or-calls":
		os.Exit(3)
	case request.GetTool() == "say", b.fault == "any-tool":
	case b.fault == "other-tool":
		return c.send(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Result{Result: &pluginv1.Result{Error: &pluginv1.ToolError{Message: "no text"}}}})
	default:
		return status.Error(codes.NotFound, "no such tool")
	}
	var in brokenArguments
	if err := json.Unmarshal(request.GetArguments(), &in); err != nil {
		if b.fault == "crash" {
			panic(err)
		}
		if b.fault == "status" {
			return status.Error(codes.InvalidArgument, err.Error())
		}
		return c.send(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Result{Result: &pluginv1.Result{
			Error: &pluginv1.ToolError{Kind: pluginv1.ToolError_KIND_INVALID_ARGUMENTS, Message: err.Error()},
		}}})
	}
	if b.running.Add(1) > 1 && b.fault == "alone-only" {
		return status.Error(codes.ResourceExhausted, "busy")
	}
	defer b.running.Add(-1)
	switch {
	case in.Flood:
		return c.flood()
	case in.Work:
		return c.work()
	}
	return c.quick(in.Text)
}

type brokenCall struct {
	*broken
	stream toolgrpc.Tool_CallServer
	seq    uint64
}

func (c *brokenCall) send(e *pluginv1.CallEvent) error {
	c.seq++
	if e.Seq = c.seq; c.fault == "seq" {
		e.Seq = 2 * c.seq
	}
	return c.stream.Send(e)
}

func textEvent(text string) *pluginv1.CallEvent {
	return &pluginv1.CallEvent{Event: &pluginv1.CallEvent_Content{Content: &pluginv1.Content{Content: &pluginv1.Content_Text{Text: text}}}}
}

func (c *brokenCall) result(structured string) error {
	return c.send(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Result{Result: &pluginv1.Result{Structured: []byte(structured)}}})
}

// quick is a call that ends by itself.
func (c *brokenCall) quick(text string) error {
	structured := fmt.Sprintf(`{"length":%d}`, len(text))
	_ = c.send(textEvent(text))
	switch c.fault {
	case "two-results":
		_ = c.result(structured)
	case "after-result":
		_ = c.result(structured)
		return c.send(textEvent("more"))
	case "no-result":
		return nil
	case "dies":
		os.Exit(3)
	case "structured":
		structured = `{"length":"long"}`
	case "unstructured":
		structured = ""
	case "prints":
		fmt.Fprintln(os.NewFile(1, "stdout"), "x")
	case "daemon":
		cmd := exec.Command("/proc/self/exe", "daemon")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			return err
		}
	case "unacknowledged":
		_ = c.send(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Flush{Flush: &pluginv1.Flush{}}})
		select {}
	case "impatient":
		_ = c.send(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Flush{Flush: &pluginv1.Flush{}}})
		return c.result(structured)
	case "wrong":
		return c.send(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Result{Result: &pluginv1.Result{Error: &pluginv1.ToolError{Message: "no"}}}})
	case "neighbours": // which it has only beside the driver
		if folders, err := filepath.Glob("/tmp/c[0-9]*"); err != nil || len(folders) == 0 {
			return c.send(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Result{Result: &pluginv1.Result{Error: &pluginv1.ToolError{Message: "alone"}}}})
		}
	}
	time.Sleep(50 * time.Millisecond) // so that calls at once overlap
	return c.result(structured)
}

// work goes on until it is cancelled.
func (c *brokenCall) work() error {
	if c.fault != "keeps-back" {
		_ = c.send(textEvent("working"))
	}
	if c.fault == "deaf" {
		select {}
	}
	select {
	case <-c.cancel:
	case <-c.stream.Context().Done():
	}
	if c.fault == "cancel-breaks" {
		return nil
	}
	err := c.send(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Result{Result: &pluginv1.Result{
		Error: &pluginv1.ToolError{Kind: pluginv1.ToolError_KIND_CANCELLED, Message: "cancelled"},
	}}})
	if c.fault == "signal-breaks" && c.told.Load() {
		return c.send(textEvent("more"))
	}
	return err
}

// flood sends without end. A hoarder would keep what is to be sent meanwhile.
func (c *brokenCall) flood() error {
	if c.fault == "hoards" {
		hoard, err := tooMuchMemory()
		if err != nil {
			return err
		}
		defer func() { _ = unix.Munmap(hoard) }()
	}
	chunk := strings.Repeat("flood ", 10_000)
	for {
		select {
		case <-c.cancel:
			return c.result(`{"length":0}`)
		default:
			if err := c.send(textEvent(chunk)); err != nil {
				return err
			}
		}
	}
}

// tooMuchMemory is more than a slow host may cost a tool, and less than a call
// may have. It is kept out of Go's heap, where it would be as much more as the
// garbage collector and the race detector's shadow make it.
func tooMuchMemory() ([]byte, error) {
	return unix.Mmap(-1, 0, mayHoard*3/2, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_POPULATE)
}
