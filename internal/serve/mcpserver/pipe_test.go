package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// What is not a message is refused, by the id it can be told by.
func TestReadMessage(t *testing.T) {
	for name, test := range map[string]struct{ line, id, says string }{
		"request":        {`{"jsonrpc":"2.0","id":1,"method":"ping"}`, "", ""},
		"string as id":   {`{"jsonrpc":"2.0","id":"a","method":"ping"}`, "", ""},
		"whole number":   {`{"jsonrpc":"2.0","id":1.0,"method":"ping"}`, "", ""},
		"notification":   {`{"jsonrpc":"2.0","method":"x"}`, "", ""},
		"answer":         {`{"jsonrpc":"2.0","id":1,"result":{}}`, "", ""},
		"error":          {`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}`, "", ""},
		"garbage":        {`garbage`, "null", "-32700"},
		"half":           {`{"jsonrpc":"2.0","id":1,`, "null", "-32700"},
		"two":            {`{"jsonrpc":"2.0","id":1,"method":"x"}{}`, "null", "-32700"},
		"NUL":            {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\x00\"}", "null", "-32700"},
		"not UTF-8":      {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", "null", "-32700"},
		"number":         {`1`, "null", "-32600"},
		"no version":     {`{"id":7,"method":"ping"}`, "7", "-32600"},
		"no method":      {`{"jsonrpc":"2.0","id":"a"}`, `"a"`, "no method"},
		"object as id":   {`{"jsonrpc":"2.0","id":{},"method":"ping"}`, "null", "neither"},
		"null as id":     {`{"jsonrpc":"2.0","id":null,"method":"ping"}`, "null", "neither"},
		"fraction":       {`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, "1.5", "neither"},
		"large":          {`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, "9007199254740993", "neither"},
		"too large":      {`{"jsonrpc":"2.0","id":1e999,"method":"ping"}`, "1e999", "neither"},
		"long id":        {`{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 300) + `","method":"ping"}`, "null", "neither"},
		"method, number": {`{"jsonrpc":"2.0","id":7,"method":5}`, "7", "not a JSON-RPC 2.0 message"},
		"method, null":   {`{"jsonrpc":"2.0","id":7,"method":null}`, "7", "not a JSON-RPC 2.0 message"},
		"no id":          {`{"jsonrpc":"2.0","result":{}}`, "null", "not a JSON-RPC 2.0 message"},
		"version 2":      {`{"jsonrpc":2.0,"id":7,"method":"ping"}`, "7", "not a JSON-RPC 2.0 message"},
		"bad answer":     {`{"jsonrpc":"2.0","id":7,"error":5}`, "null", "not a JSON-RPC 2.0 message"},
		"key twice":      {`{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":1,"a":2}}`, "7", "there twice"},
		"deep":           {`{"jsonrpc":"2.0","id":7,"method":"x","params":` + strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200) + `}`, "7", "deeper"},
	} {
		m, f := readMessage([]byte(test.line))
		if (f == nil) != (test.says == "") || (m == nil) != (f != nil) {
			t.Errorf("%s: %v, %+v", name, m, f)
		}
		if f == nil {
			continue
		}
		var said struct {
			Version string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
		}
		if raw := f.json(); json.Unmarshal(raw, &said) != nil || said.Version != "2.0" || string(said.ID) != test.id || !strings.Contains(string(raw), test.says) {
			t.Errorf("%s: %s", name, raw)
		}
	}
}

// Whatever is read is refused or taken, and answers can be written to all of it.
func FuzzReadMessage(f *testing.F) {
	for _, seed := range []string{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"id":-0.0,"jsonrpc":"2.0"}`, `[{}]`, `{"jsonrpc":"2.0","ID":1,"id":2,"method":""}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, bad := readMessage(raw)
		if (m == nil) == (bad == nil) {
			t.Fatalf("%v, %v", m, bad)
		}
		if bad != nil && !json.Valid(bad.json()) {
			t.Fatalf("%s", bad.json())
		}
		if m == nil {
			return
		}
		theirs, err := jsonrpc.DecodeMessage(raw)
		if err != nil || !reflect.DeepEqual(m, theirs) {
			t.Fatalf("%#v, for the SDK %#v, %v", m, theirs, err)
		}
	})
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", maxMessageBytes-1) // and its end
	from := newLines(strings.NewReader("\xef\xbb\xbfa\r\n\n \t\n" + long + "\n" + long + "y\nb\n\xef\xbb\xbfc\nlast"))
	for _, want := range []string{"a", long, "", "b", "\xef\xbb\xbfc", "last"} {
		line, err := from.next()
		if string(line) != want || (err == errLong) != (want == "") {
			t.Fatalf("%.20q, %v; want %.20q", line, err, want)
		}
	}
	if _, err := from.next(); err != io.EOF {
		t.Error(err)
	}
}

// wires are a pipe with a client's ends.
type wires struct {
	*pipe
	to   *io.PipeWriter // the client's
	from *io.PipeReader
}

func newWires(t *testing.T) *wires {
	t.Helper()
	in, to := io.Pipe()
	from, out := io.Pipe()
	w := &wires{newPipe(in, out), to, from}
	w.begun = true
	if _, err := w.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = w.Close()
		<-w.ended
	})
	return w
}

func (w *wires) send(lines ...string) error {
	_, err := io.WriteString(w.to, strings.Join(lines, "\n")+"\n")
	return err
}

// next is the next request that the server reads.
func (w *wires) next(t *testing.T) *jsonrpc.Request {
	t.Helper()
	m, err := w.Read(wait.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	return m.(*jsonrpc.Request)
}

func (w *wires) reply(r *jsonrpc.Request) error {
	return w.Write(context.Background(), &jsonrpc.Response{ID: r.ID, Result: json.RawMessage(`{}`)})
}

func request(id any) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%#v,"method":"x"}`, id) }

// A client that reads nothing is heard all the same.
func TestReadingGoesOn(t *testing.T) {
	w := newWires(t)
	var writers sync.WaitGroup
	for i := range 3 {
		if err := w.send(request(i)); err != nil {
			t.Fatal(err)
		}
		r := w.next(t)
		writers.Go(func() { _ = w.reply(r) }) // blocks
	}
	if err := w.send("garbage", request("a"), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}`); err != nil {
		t.Fatal(err)
	}
	if r := w.next(t); r.ID.Raw() != "a" {
		t.Errorf("%+v", r)
	}
	if r := w.next(t); r.Method != cancelledMethod {
		t.Errorf("%+v", r)
	}
	_ = w.Close()
	writers.Wait()
}

// One that sends nonsense without taking the answers is dropped.
func TestFloodOfNonsense(t *testing.T) {
	w := newWires(t)
	sent := make(chan error)
	go func() {
		var err error
		for range 2*maxFaults + 2 {
			if err = w.send("}{"); err != nil {
				break
			}
		}
		sent <- err
	}()
	select {
	case <-w.ended:
	case <-wait.Context(t).Done():
		t.Fatal("it goes on")
	}
	_ = w.Close()
	if err := <-sent; err == nil || w.err == nil || !strings.Contains(w.err.Error(), "faster than it takes") {
		t.Errorf("%v, sent %v", w.err, err)
	}
}

// One that takes the answers may send as much of it as it likes.
func TestNonsenseIsAnswered(t *testing.T) {
	w := newWires(t)
	answers := newLines(w.from)
	for i := range 2 * maxFaults {
		if err := w.send("}{"); err != nil {
			t.Fatal(err)
		}
		if line, err := answers.next(); err != nil || !bytes.Contains(line, []byte("-32700")) {
			t.Fatalf("%d: %s, %v", i, line, err)
		}
	}
	_ = w.to.Close()
	<-w.ended
	w.finish()
	if w.err != io.EOF {
		t.Error(w.err)
	}
}

// An id is free again once its request was answered, a cancelled one without a
// word.
func TestIDs(t *testing.T) {
	w := newWires(t)
	answers := newLines(w.from)
	told := make(chan string, 16)
	go func() {
		defer close(told)
		for {
			line, err := answers.next()
			if err != nil {
				return
			}
			told <- string(line)
		}
	}()
	for range 2 {
		if err := w.send(request(1), request(1)); err != nil {
			t.Fatal(err)
		}
		r := w.next(t)
		if line := <-told; !strings.Contains(line, `"id":null`) || !strings.Contains(line, "the id 1 is that of") {
			t.Error(line)
		}
		if err := w.reply(r); err != nil {
			t.Error(err)
		}
		if line := <-told; line != `{"jsonrpc":"2.0","id":1,"result":{}}` {
			t.Error(line)
		}
	}
	if err := w.send(request("b"), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"b"}}`); err != nil {
		t.Fatal(err)
	}
	r := w.next(t)
	w.next(t)
	if err := w.reply(r); err != nil {
		t.Error(err)
	}
	w.finish()
	_ = w.Close()
	for line := range told {
		t.Errorf("a cancelled request is answered: %s", line)
	}
}

func TestOpenRequestsAreBounded(t *testing.T) {
	w := newWires(t)
	answer := make(chan string, 1)
	go func() {
		line, _ := newLines(w.from).next()
		answer <- string(line)
	}()
	go func() {
		for i := range maxOpen + 1 {
			_ = w.send(request(i))
		}
	}()
	for range maxOpen {
		w.next(t)
	}
	defer context.AfterFunc(wait.Context(t), func() { _ = w.from.Close() })()
	if line := <-answer; !strings.Contains(line, fmt.Sprintf(`"id":%d`, maxOpen)) || !strings.Contains(line, "-32000") {
		t.Error(line)
	}
}

// The state of a question is given up by the id of the request that it has answered, unless
// that is another's by then; one of a request that was cancelled before, at once.
func TestQuestionsAreGivenUp(t *testing.T) {
	w := newWires(t)
	givenUp := make(chan string, 1)
	w.giveUp = func(state string) { givenUp <- state }
	answers := newLines(w.from)
	cancel := func(id int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id)
	}
	asks := func(r *jsonrpc.Request) {
		t.Helper()
		if err := w.Write(t.Context(), &jsonrpc.Response{ID: r.ID, Result: fmt.Appendf(nil, `{"requestState":"s%v"}`, r.ID.Raw())}); err != nil {
			t.Error(err)
		}
	}
	took := make(chan struct{})
	go func() {
		defer close(took)
		for range maxAsked + 1 {
			if _, err := answers.next(); err != nil {
				t.Error(err)
			}
		}
	}()
	for i := range maxAsked + 1 {
		if err := w.send(request(i)); err != nil {
			t.Fatal(err)
		}
		asks(w.next(t))
	}
	<-took
	if err := w.send(request(1), cancel(1), cancel(0), cancel(maxAsked)); err != nil { // 1 is in use again, 0 forgotten
		t.Fatal(err)
	}
	again := w.next(t)
	for range 3 {
		w.next(t)
	}
	if state := <-givenUp; state != fmt.Sprintf("s%d", maxAsked) {
		t.Errorf("given up: %s", state)
	}
	asks(again)
	if state := <-givenUp; state != "s1" {
		t.Errorf("given up: %s", state)
	}
}
