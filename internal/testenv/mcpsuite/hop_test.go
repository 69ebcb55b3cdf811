package mcpsuite

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// hop is an MCP server over pipes that passes everything on to one over HTTP, and
// back: the suite has its servers there, and the adapter's are behind pipes. It
// changes no message.
type hop struct {
	url string

	mu       sync.Mutex
	version  string // as initialize has agreed on
	session  string
	lastID   string
	out      io.Writer
	requests sync.WaitGroup
}

// message is as much of one as a hop must know.
type message struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params struct {
		Name            string `json:"name"`
		URI             string `json:"uri"`
		ProtocolVersion string `json:"protocolVersion"`
		Meta            struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	} `json:"params"`
	Result struct {
		ProtocolVersion string `json:"protocolVersion"`
	} `json:"result"`
}

// pass goes on until stdin ends.
func (h *hop) pass(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		raw := bytes.Clone(lines.Bytes())
		var m message
		if err := json.Unmarshal(raw, &m); err != nil {
			return err
		}
		if m.Method == "" || m.ID == nil { // in order
			h.post(raw, m)
			if m.Method == "notifications/initialized" {
				h.listen()
			}
			continue
		}
		h.requests.Go(func() { h.post(raw, m) })
	}
	return lines.Err()
}

func (h *hop) request(method string, body []byte, m message) (*http.Response, error) {
	r, err := http.NewRequest(method, h.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "text/event-stream")
	h.mu.Lock()
	defer func() { h.mu.Unlock() }()
	if body != nil {
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Content-Type", "application/json")
	}
	version := m.Params.Meta.Version
	if version == "" {
		version = h.version
	}
	for key, value := range map[string]string{"Mcp-Protocol-Version": version, "Mcp-Session-Id": h.session} {
		if value != "" {
			r.Header.Set(key, value)
		}
	}
	if m.Method != "" {
		r.Header.Set("Mcp-Method", m.Method)
		if name := m.Params.Name + m.Params.URI; name != "" {
			r.Header.Set("Mcp-Name", name)
		}
	}
	if body == nil && h.lastID != "" {
		r.Header.Set("Last-Event-ID", h.lastID)
	}
	h.mu.Unlock()
	response, err := http.DefaultClient.Do(r)
	h.mu.Lock()
	if err == nil && response.Header.Get("Mcp-Session-Id") != "" {
		h.session = response.Header.Get("Mcp-Session-Id")
	}
	return response, err
}

// post sends a message, and gives what comes back.
func (h *hop) post(raw []byte, m message) {
	response, err := h.request(http.MethodPost, raw, m)
	if err != nil {
		h.failed(m, err)
		return
	}
	defer response.Body.Close()
	if kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); kind == "text/event-stream" {
		h.stream(response.Body, m)
		return
	}
	body, err := io.ReadAll(response.Body)
	switch {
	case m.ID == nil:
	case err != nil || !json.Valid(body):
		h.failed(m, fmt.Errorf("%s: %s", response.Status, body))
	case !h.give(body, m): // an error of HTTP's, whose id may be null
		h.failed(m, fmt.Errorf("%s: %s", response.Status, body))
	}
}

// stream gives the messages of one, and takes it up again where it ends before its
// answer has come, after the time that the server wants.
func (h *hop) stream(body io.Reader, m message) {
	answered, retry := h.events(body, m)
	for tries := 0; m.ID != nil && !answered && tries < 3; tries++ {
		time.Sleep(retry)
		response, err := h.request(http.MethodGet, nil, message{})
		if err != nil {
			break
		}
		answered, _ = h.events(response.Body, m)
		_ = response.Body.Close()
	}
	if m.ID != nil && !answered {
		h.failed(m, io.ErrUnexpectedEOF)
	}
}

func (h *hop) events(body io.Reader, m message) (answered bool, retry time.Duration) {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 16<<20)
	data := ""
	for !answered && lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "id":
			h.mu.Lock()
			h.lastID = value
			h.mu.Unlock()
		case "retry":
			n, _ := strconv.Atoi(value)
			retry = time.Duration(n) * time.Millisecond
		case "data":
			data += value
		case "":
			if data != "" {
				answered = h.give([]byte(data), m)
			}
			data = ""
		}
	}
	return answered, retry
}

// listen takes what a server says by itself, if it does, from before the next request
// on.
func (h *hop) listen() {
	response, err := h.request(http.MethodGet, nil, message{})
	if err != nil {
		return
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return
	}
	go func() {
		defer response.Body.Close()
		h.events(response.Body, message{})
	}()
}

// give writes a message to the pipe, and says whether it answers m. What answers
// nothing that was asked stays out.
func (h *hop) give(raw []byte, m message) bool {
	var got message
	_ = json.Unmarshal(raw, &got)
	h.mu.Lock()
	defer h.mu.Unlock()
	if m.Method == "initialize" && got.Result.ProtocolVersion != "" {
		h.version = got.Result.ProtocolVersion
	}
	if got.Method == "" && !bytes.Equal(got.ID, m.ID) {
		return false
	}
	_, _ = h.out.Write(append(bytes.ReplaceAll(raw, []byte("\n"), nil), '\n'))
	return got.Method == ""
}

// failed answers a request in the place of a server that does not.
func (h *hop) failed(m message, err error) {
	fmt.Fprintln(os.Stderr, "hop:", m.Method, err)
	if m.ID == nil {
		return
	}
	text, _ := json.Marshal(err.Error())
	h.give(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":%s}}`, m.ID, text), m)
}
