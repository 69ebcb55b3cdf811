package supervisor_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"

	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/plugin/proto/v1/toolgrpc"
)

// playHostile breaks the handshake in the way that its name says, or serves a
// tool that breaks the protocol; it never returns.
func playHostile(how string) {
	dir := os.Getenv("PLUGIN_UNIX_SOCKET_DIR")
	switch how {
	case "late":
		hang()
	case "notplugin":
		fmt.Println("hello, world")
	case "exit":
		os.Exit(0)
	case "endless":
		for {
			os.Stdout.Write([]byte(strings.Repeat("A", 1<<16)))
		}
	case "version":
		fmt.Println("1|99|unix|" + filepath.Join(dir, "x") + "|grpc|")
	case "tcp":
		fmt.Println("1|1|tcp|127.0.0.1:9|grpc|")
	case "elsewhere":
		fmt.Println("1|1|unix|/run/dbus/system_bus_socket|grpc|")
	case "dotdot":
		fmt.Println("1|1|unix|" + dir + "/../x|grpc|")
	case "link":
		os.Symlink("/run/dbus/system_bus_socket", filepath.Join(dir, "x"))
		fmt.Println("1|1|unix|" + filepath.Join(dir, "x") + "|grpc|")
	case "nosocket":
		os.WriteFile(filepath.Join(dir, "x"), nil, 0o600)
		fmt.Println("1|1|unix|" + filepath.Join(dir, "x") + "|grpc|")
	case "pings":
		floodOfPings(dir)
	case "mute", "babble", "hangup":
		listenWithoutGRPC(dir, how)
	case "cert":
		fmt.Println("1|1|unix|" + filepath.Join(dir, "x") + "|grpc|" + strings.Repeat("A", 100))
	case "wrapper": // whose child goes on, as that of a shell script without exec
		if err := child("deaf", true, os.Stdout).Start(); err != nil {
			panic(err)
		}
		os.Exit(0)
	case "forgedlog":
		fmt.Fprintln(os.Stderr, `{"@message":1}`)
		serveHostile("ok")
	default:
		serveHostile(how)
	}
	hang()
}

// listenWithoutGRPC takes the host's connection and then says nothing, something
// else, or goodbye.
func listenWithoutGRPC(dir, how string) {
	listener, err := net.Listen("unix", filepath.Join(dir, "x"))
	if err != nil {
		panic(err)
	}
	fmt.Println("1|1|unix|" + filepath.Join(dir, "x") + "|grpc|")
	fmt.Fprintln(os.Stderr, "listening")
	conn, err := listener.Accept()
	switch {
	case err != nil:
		panic(err)
	case how == "babble":
		fmt.Fprint(conn, "HTTP/1.1 400 Bad Request\r\n\r\n")
	case how == "hangup":
		conn.Close()
	}
}

// floodOfPings is a server of HTTP/2 that asks for replies and reads nothing. It dies
// of it, as most programs do, when the host ends the connection.
func floodOfPings(dir string) {
	listener, err := net.Listen("unix", filepath.Join(dir, "x"))
	if err != nil {
		panic(err)
	}
	fmt.Println("1|1|unix|" + filepath.Join(dir, "x") + "|grpc|")
	conn, err := listener.Accept()
	settings, ping := []byte{0, 0, 0, 4, 0, 0, 0, 0, 0}, []byte("\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678")
	for frames := settings; err == nil; frames = bytes.Repeat(ping, 1000) {
		_, err = conn.Write(frames)
	}
	os.Exit(1)
}

func serveHostile(how string) {
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: goplugin.HandshakeConfig{ProtocolVersion: 1, MagicCookieKey: "TOOLHOST_PLUGIN", MagicCookieValue: "toolhost.plugin.v1"},
		Plugins:         goplugin.PluginSet{"tool": &hostile{how: how, answers: make(chan string, 1)}},
		Logger:          hclog.NewNullLogger(),
		GRPCServer:      goplugin.DefaultGRPCServer,
	})
	os.Exit(0)
}

type hostile struct {
	goplugin.NetRPCUnsupportedPlugin
	toolgrpc.UnimplementedToolServer
	how     string
	answers chan string
}

func (h *hostile) GRPCServer(_ *goplugin.GRPCBroker, s *grpc.Server) error {
	toolgrpc.RegisterToolServer(s, h)
	return nil
}

func (h *hostile) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, nil
}

func (h *hostile) Describe(context.Context, *pluginv1.DescribeRequest) (*pluginv1.DescribeResponse, error) {
	d := &pluginv1.DescribeResponse{Tools: []*pluginv1.ToolDescription{{Name: "hostile", InputSchema: []byte(`{"type":"object"}`)}}}
	switch h.how {
	case "describe-none":
		d.Tools = nil
	case "describe-twice":
		d.Tools = append(d.Tools, d.Tools[0])
	case "describe-schema":
		d.Tools[0].InputSchema = []byte(`{"type":12`)
	case "describe-output":
		d.Tools[0].OutputSchema = []byte("{")
	case "describe-array":
		d.Tools[0].InputSchema = []byte(`{"type":"array"}`)
	case "describe-bytes":
		d.Tools[0].InputSchema = []byte("{\"type\":\"object\",\"title\":\"\xff\"}")
	case "describe-lines":
		d.Tools[0].Name = "a\ntoolhost: the sandbox is off"
	case "describe-pattern":
		d.Tools[0].InputSchema = []byte(`{"type":"object","properties":{"x":{"pattern":"` + strings.Repeat("(?:.?){1000}", 1600) + `"}}}`)
	case "describe-parts":
		parts := []byte(`{"type":"object","properties":{"x":{"enum":[{}` + strings.Repeat(",{}", 9000) + `]}}}`)
		for i := range 20 {
			d.Tools = append(d.Tools, &pluginv1.ToolDescription{Name: fmt.Sprint("x", i), InputSchema: parts})
		}
	case "describe-hang":
		hang()
	case "describe-hints":
		d.Tools[0].Timeouts = &pluginv1.TimeoutHints{TimeoutMs: math.MaxInt64, SoftBudgetMs: math.MinInt64, GapMs: 5}
	case "describe-claim":
		d.Error = &pluginv1.ToolError{Kind: pluginv1.ToolError_KIND_COMMAND_NOT_FOUND, Message: "boo"}
	}
	if field, ok := strings.CutPrefix(h.how, "describe-empty-"); ok {
		d.ProtoReflect().SetUnknown(empties(field))
	}
	if what, ok := strings.CutPrefix(h.how, "describe-odd-"); ok {
		odd := slices.Concat([]byte(`{"name":"x","kept":1,"odd":`), oddJSON(what), []byte("}"))
		d.Tools[0].Extra = odd
		d.Server = &pluginv1.Server{Prompts: [][]byte{odd}, Resources: [][]byte{odd}, Templates: [][]byte{odd, []byte(`[]`)}, Capabilities: odd}
	}
	if h.how == "describe-large" {
		d.Version, d.Tools[0].Title, d.Tools[0].Description = strings.Repeat("v", 1<<20), strings.Repeat("t", 1<<20), strings.Repeat("d", 1<<20)
		d.Tools[0].Extra = []byte(`{"x":"` + strings.Repeat("x", 300_000) + `"}`)
	}
	if what, ok := strings.CutPrefix(h.how, "describe-inschema-"); ok {
		d.Tools[0].InputSchema = slices.Concat([]byte(`{"type":"object","default":`), oddJSON(what), []byte("}"))
	}
	if strings.HasPrefix(h.how, "json-promised-") {
		d.Tools[0].OutputSchema = []byte(`{}`)
	}
	return d, nil
}

// oddJSON is JSON that not every program takes.
func oddJSON(what string) []byte {
	if depth, err := strconv.Atoi(what); err == nil {
		return []byte(strings.Repeat(`{"a":[`, depth/2) + "1" + strings.Repeat("]}", depth/2))
	}
	return []byte(map[string]string{
		"secrets":      `{"first-secret-value":1,"second-secret-value":2}`,
		"twice":        `{"a":1,"a":2}`,
		"twiceEscaped": `{"a":1,"\u0061":2}`,
		"huge":         `{"a":1e400}`,
		"long":         `{"a":0.` + strings.Repeat("1", 2000) + `}`,
		"half":         `{"a":"\ud800"}`,
		"tiny":         `{"a":1e-400,"b":-0}`,
		"halfKeys":     `{"\ud800":1,"\ud801":2}`,
	}[what])
}

func (h *hostile) sendOdd(send func(*pluginv1.CallEvent), where, what string) {
	raw := oddJSON(what)
	result := &pluginv1.Result{}
	switch where {
	case "structured", "promised":
		result.Structured = raw
	case "content":
		part := &pluginv1.Content{Content: &pluginv1.Content_Json{Json: raw}}
		send(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Content{Content: part}})
		result.Content = []*pluginv1.Content{part}
	case "extra": // beside JSON that is odd, too
		part := &pluginv1.Content{Content: &pluginv1.Content_Json{Json: raw}, Extra: slices.Concat([]byte(`{"kept":1,"odd":`), raw, []byte("}"))}
		result.Content = []*pluginv1.Content{part}
	case "meta":
		result.Meta = slices.Concat([]byte(`{"kept":1,"odd":`), raw, []byte("}"))
		send(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Log{Log: &pluginv1.Log{Severity: "error", Message: "log", Data: raw, Meta: result.Meta}}})
	case "rpc":
		result.Error = &pluginv1.ToolError{Kind: pluginv1.ToolError_KIND_ERROR, Message: "no", Rpc: slices.Concat([]byte(`{"code":-32000,"message":"no","data":`), raw, []byte("}"))}
	case "rounds":
		result.Meta = slices.Concat([]byte(`{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list","params":`), raw, []byte("}}}"))
	case "ask", "request":
		ask := &pluginv1.Ask{InteractionId: "x", Schema: raw}
		if where == "request" {
			ask = &pluginv1.Ask{InteractionId: "x", Requests: map[string]*pluginv1.ClientRequest{"a": {Method: "sampling/createMessage", Params: raw}}}
		}
		send(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Ask{Ask: ask}})
		reason := <-h.answers
		result.Content = []*pluginv1.Content{{Content: &pluginv1.Content_Text{Text: reason}}}
	}
	send(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Result{Result: result}})
}

func (h *hostile) Answer(_ context.Context, r *pluginv1.AnswerRequest) (*pluginv1.AnswerResponse, error) {
	h.answers <- r.GetReason()
	return &pluginv1.AnswerResponse{}, nil
}

// empties is nearly 4 MiB of a field that holds nothing.
func empties(field string) []byte {
	number, err := strconv.Atoi(field)
	if err != nil {
		panic(err)
	}
	return bytes.Repeat(protowire.AppendBytes(protowire.AppendTag(nil, protowire.Number(number), protowire.BytesType), nil), 2_000_000)
}

func (h *hostile) Call(_ *pluginv1.CallRequest, s toolgrpc.Tool_CallServer) error {
	seq := uint64(0)
	send := func(e *pluginv1.CallEvent) {
		seq++
		if e.Seq == 0 {
			e.Seq = seq
		}
		s.Send(e)
	}
	text := func(t string) *pluginv1.CallEvent {
		return &pluginv1.CallEvent{Event: &pluginv1.CallEvent_Content{Content: &pluginv1.Content{Content: &pluginv1.Content_Text{Text: t}}}}
	}
	result := func() *pluginv1.CallEvent {
		return &pluginv1.CallEvent{Event: &pluginv1.CallEvent_Result{Result: &pluginv1.Result{}}}
	}
	send(text("kept "))
	switch h.how {
	case "second-result":
		send(result())
		send(result())
	case "after-result":
		send(result())
		send(text("more"))
	case "result-hang":
		send(result())
		hang()
	case "lying-seq":
		e := text("lie")
		e.Seq = 7
		send(e)
	case "huge":
		send(text(strings.Repeat("x", 64<<20)))
	case "empty-event":
		send(&pluginv1.CallEvent{})
	case "bad-json":
		send(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Content{Content: &pluginv1.Content{Content: &pluginv1.Content_Json{Json: []byte("{")}}}})
	case "no-result":
		return nil
	case "ask-flood":
		for {
			send(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Ask{Ask: &pluginv1.Ask{InteractionId: "x"}}})
		}
	case "flush-flood":
		for range 10000 {
			send(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Flush{Flush: &pluginv1.Flush{}}})
		}
		send(result())
	default:
		if size, ok := strings.CutPrefix(h.how, "fields-"); ok {
			n, _ := strconv.Atoi(size)
			extra := []byte(`{"x":"` + strings.Repeat("x", n) + `"}`)
			for range 20 {
				send(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Content{Content: &pluginv1.Content{Content: &pluginv1.Content_Text{Text: "hi"}, Begins: true, Extra: extra}}})
			}
		}
		if rest, ok := strings.CutPrefix(h.how, "json-"); ok {
			where, what, _ := strings.Cut(rest, "-")
			h.sendOdd(send, where, what)
			return nil
		}
		if claim, ok := strings.CutPrefix(h.how, "claim-"); ok {
			e := &pluginv1.Result{Exit: &pluginv1.CommandExit{Signal: claim}}
			if kind, ok := pluginv1.ToolError_Kind_value[claim]; ok {
				e = &pluginv1.Result{Error: &pluginv1.ToolError{Kind: pluginv1.ToolError_Kind(kind), Message: "boo"}}
			}
			send(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Result{Result: e}})
			return nil
		}
		if field, ok := strings.CutPrefix(h.how, "result-empty-"); ok {
			e := &pluginv1.Result{}
			e.ProtoReflect().SetUnknown(empties(field))
			send(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Result{Result: e}})
			return nil
		}
		send(result())
	}
	return nil
}
