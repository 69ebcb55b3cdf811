package siege

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/plugin/proto/v1/toolgrpc"
)

// tool is a hostile one. Of start, describe and call those are set that it is
// hostile in; one with command or mcp, which the configuration has as they are,
// is no plugin.
type tool struct {
	name, why string
	start     func(dir string) // in place of a handshake
	describe  func(*pluginv1.DescribeResponse)
	call      func(*stage) error
	command   string
	mcp       string
}

// hostileTools are 50.
var hostileTools = []tool{
	{name: "startHang", why: "never says where it listens", start: func(string) { hang() }},
	{name: "startBabble", why: "says what is no handshake", start: func(string) { fmt.Println("hello, world"); hang() }},
	{name: "startEndless", why: "a handshake line without an end", start: func(string) { pour(os.Stdout, strings.Repeat("A", 1<<16)) }},
	{name: "startVersion", why: "a protocol that there is not", start: says("1|99|unix|$DIR/x|grpc|")},
	{name: "startTCP", why: "listens on another machine's port", start: says("1|1|tcp|127.0.0.1:9|grpc|")},
	{name: "startElsewhere", why: "names a socket of the system", start: says("1|1|unix|/run/dbus/system_bus_socket|grpc|")},
	{name: "startMute", why: "takes the connection and says nothing", start: listens("")},
	{name: "startWrong", why: "speaks something else than gRPC", start: listens("HTTP/1.1 400 Bad Request\r\n\r\n")},
	{name: "startOrphan", why: "exits, and a child holds its pipes", start: func(string) { spawn(); os.Exit(0) }},
	{name: "startExit", why: "exits at once", start: func(string) { os.Exit(3) }},

	{name: "describeHang", why: "never says what it has", describe: func(*pluginv1.DescribeResponse) { hang() }},
	{name: "describeExit", why: "dies when asked what it has", describe: func(*pluginv1.DescribeResponse) { os.Exit(0) }},
	{name: "describeSlow", why: "takes its time to say what it has", describe: func(*pluginv1.DescribeResponse) { time.Sleep(2 * time.Second) }},
	{name: "describeEmpties", why: "2,000,000 tools without anything", describe: func(d *pluginv1.DescribeResponse) { pad(d, "\x12\x00") }},
	{name: "describeWarnings", why: "2,000,000 empty warnings", describe: func(d *pluginv1.DescribeResponse) { pad(d, "\x22\x00") }},
	{name: "describePattern", why: "a schema whose pattern explodes", describe: func(d *pluginv1.DescribeResponse) {
		d.Tools[0].InputSchema = []byte(`{"type":"object","properties":{"x":{"pattern":"` + strings.Repeat("(?:.?){1000}", 1600) + `"}}}`)
	}},
	{name: "describeWide", why: "schemas of many parts, in many tools", describe: func(d *pluginv1.DescribeResponse) {
		parts := []byte(`{"type":"object","properties":{"x":{"enum":[{}` + strings.Repeat(",{}", 9000) + `]}}}`)
		for i := range 100 {
			d.Tools = append(d.Tools, &pluginv1.ToolDescription{Name: fmt.Sprint("x", i), InputSchema: parts})
		}
	}},

	{name: "emptyContents", why: "a result with 2,000,000 contents without anything", call: emptyContents},
	{name: "emptyEvents", why: "events without anything", call: flood(always(&pluginv1.CallEvent{}))},
	{name: "deepJSON", why: "a result 9,999 deep", call: structured(func() string { return strings.Repeat(`{"a":`, 9999) + "1" + strings.Repeat("}", 9999) })},
	{name: "numbers", why: "numbers that no language can hold", call: structured(func() string { return `{"a":1e999999999,"b":-1e-999999999,"c":` + strings.Repeat("9", 100_000) + `}` })},
	{name: "twinKeys", why: "a key twice, and half a surrogate pair", call: structured(always(`{"a":1,"a":2,"b":"\ud800"}`))},
	{name: "emptyObjects", why: "4 MiB of empty objects", call: structured(func() string { return `{"a":[{}` + strings.Repeat(",{}", 1<<20) + `]}` })},
	{name: "tinyContent", why: "content of a byte, without an end", call: flood(always(text("x")))},
	{name: "jsonContent", why: "content of deep JSON, without an end", call: flood(func() *pluginv1.CallEvent {
		return content(&pluginv1.Content{Content: &pluginv1.Content_Json{Json: []byte(strings.Repeat("[", 9000) + strings.Repeat("]", 9000))}})
	})},
	{name: "progress", why: "progress without an end", call: flood(always(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Progress{Progress: &pluginv1.Progress{Message: forgery}}}))},
	{name: "logs", why: "log lines without an end", call: flood(always(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Log{Log: &pluginv1.Log{Message: forgery}}}))},
	{name: "questions", why: "questions without an end", call: questions},
	{name: "flushes", why: "asks for acknowledgement, and takes none", call: flood(always(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Flush{Flush: &pluginv1.Flush{}}}))},
	{name: "afterResult", why: "goes on after its result", call: afterResult},
	{name: "resultHang", why: "hangs after its result", call: func(s *stage) error { s.send(result(nil)); hang(); return nil }},
	{name: "hugeMessage", why: "one message of 64 MiB", call: func(s *stage) error { s.send(text(strings.Repeat("x", 64<<20))); return nil }},
	{name: "drips", why: "output byte by byte", call: func(*stage) error { go pour(os.Stderr, "y"); pour(os.Stdout, "x"); return nil }},
	{name: "floods", why: "output as fast as it goes", call: func(*stage) error { pour(os.Stdout, strings.Repeat("flood\n", 1<<13)); return nil }},
	{name: "forger", why: "output that pretends to be the host's", call: forge},
	{name: "exits", why: "dies at some moment, of something", call: exits},
	{name: "deaf", why: "ignores SIGTERM, as do its children", call: deaf},
	{name: "stops", why: "stops itself", call: stops},
	{name: "burns", why: "all the CPU that there is", call: burns},
	{name: "forks", why: "as many processes as it may", call: func(*stage) error { return forever(spawn) }},
	{name: "threads", why: "as many threads as it may", call: threads},
	{name: "memory", why: "as much memory as there is", call: memory},
	{name: "disk", why: "fills its folders", call: disk},
	{name: "files", why: "all files that it may open", call: files},

	{name: "comYes", why: "a command without an end", command: `["yes"]`},
	{name: "comDeep", why: "a command whose JSON has no bottom", command: `[sh, -c, "head -c 1000000 /dev/zero | tr '\\0' '['"], format: json`},
	{name: "comObjects", why: "a command with a line of JSON for each event", command: `["yes", "[1]"], format: ndjson`},
	{name: mcpHang, why: "an MCP server that says nothing", mcp: `[sleep, 1h]`},
	{name: "mcpYes", why: "an MCP server that says the same for ever", mcp: `["yes", "[]"]`},
	{name: "mcpDeep", why: "an MCP server that nests without end", mcp: `[sh, -c, "tr '\\0' '[' < /dev/zero"]`},
}

const mcpHang = "mcpHang"

// entry is the tool's in the configuration.
func (t tool) entry(binary string) string {
	if t.mcp != "" {
		return fmt.Sprintf("  %s: {mcp: %s, class: hostile}\n", t.name, t.mcp)
	}
	if t.command != "" {
		return fmt.Sprintf("  %s: {command: %s, stdin: n, params: {n: {type: integer}}, class: hostile}\n", t.name, t.command)
	}
	return fmt.Sprintf("  %s: {plugin: %s, args: [%s], tool: hostile, class: hostile}\n", t.name, binary, t.name)
}

// called is the name by which it is called: an MCP server's tools can be anything.
func (t tool) called() string {
	if t.mcp != "" {
		return t.name + "__anything"
	}
	return t.name
}

// playTool is a hostile plugin, or the neighbours' tool; it never returns.
func playTool(name string) {
	played := tool{name: name}
	for _, t := range hostileTools {
		if t.name == name {
			played = t
		}
	}
	if played.start != nil {
		played.start(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"))
		hang()
	}
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: goplugin.HandshakeConfig{ProtocolVersion: 1, MagicCookieKey: "TOOLHOST_PLUGIN", MagicCookieValue: "toolhost.plugin.v1"},
		Plugins:         goplugin.PluginSet{"tool": &server{tool: played}},
		Logger:          hclog.NewNullLogger(),
		GRPCServer:      goplugin.DefaultGRPCServer,
	})
	os.Exit(0)
}

type server struct {
	goplugin.NetRPCUnsupportedPlugin
	toolgrpc.UnimplementedToolServer
	tool tool
}

func (s *server) GRPCServer(_ *goplugin.GRPCBroker, to *grpc.Server) error {
	toolgrpc.RegisterToolServer(to, s)
	return nil
}

func (s *server) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, nil
}

func (s *server) Describe(context.Context, *pluginv1.DescribeRequest) (*pluginv1.DescribeResponse, error) {
	d := &pluginv1.DescribeResponse{Tools: []*pluginv1.ToolDescription{{Name: "hostile", InputSchema: []byte(`{"type":"object"}`)}}}
	if s.tool.describe != nil {
		s.tool.describe(d)
	}
	return d, nil
}

// Call says its arguments and ends, unless the tool does something else.
func (s *server) Call(r *pluginv1.CallRequest, to toolgrpc.Tool_CallServer) error {
	on := &stage{to: to}
	if s.tool.call != nil {
		return s.tool.call(on)
	}
	on.send(text(string(r.GetArguments())))
	on.send(result(nil))
	return nil
}

// stage is where a call plays: its stream of events.
type stage struct {
	to  toolgrpc.Tool_CallServer
	seq uint64
}

func (s *stage) send(e *pluginv1.CallEvent) bool {
	s.seq++
	e.Seq = s.seq
	return s.to.Send(e) == nil
}

// pad fills a message up to what one may have, by a field's tag and length.
func pad(m proto.Message, field string) {
	m.ProtoReflect().SetUnknown([]byte(strings.Repeat(field, (4<<20-1024)/len(field))))
}

func content(c *pluginv1.Content) *pluginv1.CallEvent {
	return &pluginv1.CallEvent{Event: &pluginv1.CallEvent_Content{Content: c}}
}

func text(t string) *pluginv1.CallEvent {
	return content(&pluginv1.Content{Content: &pluginv1.Content_Text{Text: t}})
}

func result(structured []byte) *pluginv1.CallEvent {
	return &pluginv1.CallEvent{Event: &pluginv1.CallEvent_Result{Result: &pluginv1.Result{Structured: structured}}}
}
