package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// peer is a server by hand, so that it can do what no library lets it do.
type peer struct {
	in     *bufio.Reader
	modern bool // it knows server/discover
}

type message struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  json.RawMessage
}

// param is one of the message's, as text.
func (m message) param(path ...string) string {
	raw := m.Params
	for _, key := range path {
		var object map[string]json.RawMessage
		_ = json.Unmarshal(raw, &object)
		raw = object[key]
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// next is the client's next message; the process ends where there is none.
func (p *peer) next() message {
	line, err := p.in.ReadBytes('\n')
	if err != nil {
		if err != io.EOF {
			panic(err)
		}
		os.Exit(0)
	}
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		panic(fmt.Sprintf("%v: %s", err, line))
	}
	if m.Method == "server/discover" && !p.modern {
		p.refuse(m, -32601, "Method not found")
		return p.next()
	}
	return m
}

// await skips to a message of this method.
func (p *peer) await(method string) message {
	for {
		if m := p.next(); m.Method == method {
			return m
		}
	}
}

func (p *peer) say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func (p *peer) answer(m message, result string) {
	p.say(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

func (p *peer) refuse(m message, code int, text string) {
	p.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, m.ID, code, text)
}

func (p *peer) text(m message, text string) {
	p.answer(m, fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, text))
}

func (p *peer) progress(m message, done, total int, text string) {
	p.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%q,"progress":%d,"total":%d,"message":%q}}`,
		m.param("_meta", "progressToken"), done, total, text)
}

const (
	initialized = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"peer","version":"3.2.1"}}`
	withLogging = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"peer","version":"3.2.1"}}`
)

// initialize answers as a decent server does.
func (p *peer) initialize() { p.answer(p.await("initialize"), initialized) }

// tools answers every tools/list with this list.
func (p *peer) tools(list string) {
	list = strings.NewReplacer("\n", "", "\t", "").Replace(list)
	p.initialize()
	for {
		p.answer(p.await("tools/list"), fmt.Sprintf(`{"tools":[%s]}`, list))
	}
}

// call waits for a call. Whoever wants a list first gets one.
func (p *peer) call() message {
	for {
		switch m := p.next(); m.Method {
		case "tools/list":
			p.answer(m, `{"tools":[`+plainTool+`]}`)
		case "tools/call":
			return m
		}
	}
}

func play(role string) {
	script, ok := scripts[role]
	if !ok {
		panic("no role " + role)
	}
	script(&peer{in: bufio.NewReader(os.Stdin)})
}

// drain takes what the client still has to say.
func (p *peer) drain() {
	for {
		p.next()
	}
}

// hang does nothing until it is killed, and not for ever where nobody does.
func hang() { time.Sleep(2 * hangLimit) }

func big(bytesWanted int) string { return strings.Repeat("x", bytesWanted) }

func nested(depth int) string {
	return string(bytes.Repeat([]byte("["), depth)) + string(bytes.Repeat([]byte("]"), depth))
}
