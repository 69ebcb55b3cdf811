package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolhost/toolhost/internal/nowait"
)

// write sends a message.
func (w *wire) write(m jsonrpc.Message) error {
	line, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	return w.send(line)
}

// response answers a request of the server's, by its id as that is written: there are
// servers whose numbers jsonrpc.ID would round, such as the time in nanoseconds.
type response struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *jsonrpc.Error  `json:"error,omitempty"`
}

// respond sends an answer.
func (w *wire) respond(r response) error {
	r.Version = "2.0"
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return w.send(line)
}

// send puts a message on a line of its own. A server that reads nothing holds it up.
func (w *wire) send(message []byte) error {
	w.writing.Lock()
	defer w.writing.Unlock()
	return w.put(append(message, '\n'))
}

// idKey is the same for each way to write an id that is text.
func idKey(id json.RawMessage) string {
	var text string
	if id[0] != '"' || json.Unmarshal(id, &text) != nil {
		return string(id)
	}
	return strconv.Quote(text)
}

// put writes; writing is locked.
func (w *wire) put(line []byte) error {
	n, err := w.process.stdin.Write(line)
	w.sent += int64(n)
	if err != nil {
		w.writeFailed.Store(true)
		w.countUnread()
		w.close()
	}
	return err
}

// try writes what the server's pipe has room for, without waiting; writing is locked.
func (w *wire) try(line []byte) (rest []byte) {
	raw, err := w.process.stdin.SyscallConn()
	if err != nil {
		return line
	}
	_ = raw.Write(func(fd uintptr) bool {
		if n, err := nowait.Write(int(fd), line); err == nil {
			w.sent += int64(n)
			line = line[n:]
		}
		return true
	})
	return line
}

// number gives a request its id, by which what comes for it is known.
func (w *wire) number(e *exchange) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ids++
	id, err := jsonrpc.MakeID(float64(w.ids))
	if err == nil {
		w.asked[id], e.id = e, id
	}
	return err
}

// requestLine is a request, by its number.
func (w *wire) requestLine(e *exchange, method string, params any) ([]byte, error) {
	raw, err := json.Marshal(params)
	if err == nil && !e.id.IsValid() { // nobody else has it yet
		err = w.number(e)
	}
	if err != nil {
		return nil, err
	}
	line, err := jsonrpc.EncodeMessage(&jsonrpc.Request{ID: e.id, Method: method, Params: raw})
	return append(line, '\n'), err
}

// request sends a request. What the server could not take was not asked.
func (w *wire) request(e *exchange, method string, params any) error {
	line, err := w.requestLine(e, method, params)
	if err != nil {
		return err
	}
	w.writing.Lock()
	defer w.writing.Unlock()
	w.begins(e)
	return w.unlessAsked(e, w.put(line))
}

// ask is request for those who do not wait for a server that reads nothing: sent tells
// when it has; nil if it has already.
func (w *wire) ask(e *exchange, method string, params any) (sent <-chan error, err error) {
	line, err := w.requestLine(e, method, params)
	if err != nil {
		return nil, err
	}
	locked := w.writing.TryLock()
	if locked {
		w.begins(e)
		if line = w.try(line); len(line) == 0 {
			w.writing.Unlock()
			return nil, nil
		}
	}
	later := make(chan error, 1)
	go func() {
		if !locked {
			w.writing.Lock()
			w.begins(e)
		}
		defer w.writing.Unlock()
		later <- w.unlessAsked(e, w.put(line))
	}()
	return later, nil
}

var errNoAnswer = errors.New("the MCP server has not answered")

// roundTrip makes a request and waits for its answer. At the end of ctx it calls late,
// which may wait for the answer some more. asked is false where the server was certainly
// not asked. e is there also without an answer, unless the request could not be made.
func (w *wire) roundTrip(ctx context.Context, method string, p params, late func(*exchange)) (e *exchange, asked bool, err error) {
	e = newExchange()
	defer w.forget(e)
	sent, err := w.ask(e, method, p)
	for err == nil {
		select {
		case err = <-sent:
			sent = nil
			continue
		case <-e.done:
		case <-w.over:
			if sent != nil { // it is about to fail, or was taken: where the server reads nothing, neither
				select {
				case <-sent:
				case <-time.After(settleTime):
				}
			}
		case <-ctx.Done():
			late(e)
		}
		answer, asked := w.result(e)
		if answer == nil {
			return e, asked, errNoAnswer
		}
		return e, true, nil // which changes no more
	}
	return nil, false, err
}

// unlessAsked takes a request back that could not be sent.
func (w *wire) unlessAsked(e *exchange, err error) error {
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.asked, e.id)
		e.id = jsonrpc.ID{}
	}
	return err
}

// notify sends a notification. A server that reads nothing holds it up.
func (w *wire) notify(method string, params any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	return w.write(&jsonrpc.Request{Method: method, Params: raw})
}

// cancel tells the server that nobody waits for the answer any more. It is
// taken all the same.
func (w *wire) cancel(e *exchange, reason string) {
	w.mu.Lock()
	id, answer := e.id, e.answer
	w.mu.Unlock()
	if id.IsValid() && answer == nil {
		_ = w.notify(methodCancelled, params{"requestId": id.Raw(), "reason": reason})
	}
}
