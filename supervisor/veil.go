package supervisor

import (
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/toolhost/toolhost/api"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/plugin/wirejson"
	"github.com/toolhost/toolhost/supervisor/internal/redact"
)

// veil takes a call's secrets out of what the call gives out. The zero value
// has none. It may be used from any goroutine.
type veil struct {
	set    atomic.Pointer[redact.Set] // grows by the answers to secret questions
	adding sync.Mutex
}

func newVeil(secrets []Secret) (*veil, error) {
	values := make([][]byte, len(secrets))
	for i, s := range secrets {
		values[i] = []byte(s.Value)
	}
	set, err := redact.New(values...)
	v := &veil{}
	if len(secrets) > 0 {
		v.set.Store(set)
	}
	return v, err
}

// add hides one more, which takes a while where there is much to hide.
func (v *veil) add(secret string) error {
	v.adding.Lock()
	defer v.adding.Unlock()
	set, err := v.set.Load().With([]byte(secret))
	if err == nil {
		v.set.Store(set)
	}
	return err
}

func (v *veil) text(s string) string { return v.set.Load().String(s) }

func (v *veil) json(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return raw
	}
	shown := v.set.Load().JSON(raw)
	if len(shown) > 0 && &shown[0] != &raw[0] && wirejson.Check(shown) != nil { // names may have become equal
		return redact.All()
	}
	return shown
}

func (v *veil) content(c api.Content) api.Content {
	set := v.set.Load()
	if set == nil {
		return c
	}
	c.Text, c.URI, c.Name, c.MIMEType = set.String(c.Text), set.String(c.URI), set.String(c.Name), set.String(c.MIMEType)
	c.JSON, c.Data = v.json(c.JSON), set.Bytes(c.Data)
	return c
}

// result goes over what was not veiled when it came.
func (v *veil) result(r *api.Result) {
	if v.set.Load() == nil {
		return
	}
	r.Structured = v.json(r.Structured)
	if r.ToolError != nil {
		r.ToolError.Message, r.ToolError.Stack = v.text(r.ToolError.Message), v.text(r.ToolError.Stack)
	}
	for i := range r.Warnings {
		r.Warnings[i] = v.text(r.Warnings[i])
	}
	for i, warning := range r.Timing.SettingsWarnings {
		r.Timing.SettingsWarnings[i] = v.text(warning)
	}
	for i := range r.Files {
		r.Files[i].Path = v.text(r.Files[i].Path)
	}
}

// description goes over what a tool that was granted secrets says of itself.
func (v *veil) description(d *pluginv1.DescribeResponse) {
	if v.set.Load() == nil {
		return
	}
	d.Version = v.text(d.GetVersion())
	for i, warning := range d.GetWarnings() {
		d.Warnings[i] = v.text(warning)
	}
	if e := d.GetError(); e != nil {
		e.Message, e.Stack = v.text(e.GetMessage()), v.text(e.GetStack())
	}
	for _, tool := range d.GetTools() {
		tool.Name, tool.Title, tool.Description = v.text(tool.GetName()), v.text(tool.GetTitle()), v.text(tool.GetDescription())
		tool.InputSchema, tool.OutputSchema = v.json(tool.GetInputSchema()), v.json(tool.GetOutputSchema())
		tool.TimeoutArgument = v.text(tool.GetTimeoutArgument())
		for _, paths := range [][]string{tool.GetWish().GetRead(), tool.GetWish().GetWrite()} {
			for i, path := range paths {
				paths[i] = v.text(path)
			}
		}
	}
}

// veiled is one stream of bytes, cut anywhere. Its methods may be called from
// any goroutine.
type veiled struct {
	veil *veil

	mu     sync.Mutex
	set    *redact.Set // that stream uses
	stream *redact.Stream
}

func (v *veil) stream() *veiled {
	set := v.set.Load()
	return &veiled{veil: v, set: set, stream: set.NewStream()}
}

// pass hands on what can be shown of the stream when p is added to it.
func (s *veiled) pass(p []byte, to func([]byte) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if set := s.veil.set.Load(); set != s.set {
		s.set = set
		s.stream.Use(set)
	}
	if p = s.stream.Write(p); len(p) == 0 {
		return nil
	}
	return to(p)
}

// end hands on what was held back. The stream may go on.
func (s *veiled) end(to func([]byte) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handOnRest(to)
}

// endIfIdle is end, unless something is being handed on at this moment.
func (s *veiled) endIfIdle(to func([]byte) error) {
	if s.mu.TryLock() {
		defer s.mu.Unlock()
		s.handOnRest(to)
	}
}

func (s *veiled) handOnRest(to func([]byte) error) {
	if rest := s.stream.Close(); len(rest) > 0 {
		_ = to(rest)
	}
	s.stream = s.set.NewStream()
}

// hideAnswer keeps the answer to a secret question out of sight from now on. A
// warning says that it cannot be.
func (c *Call) hideAnswer(a Answer) (warning string) {
	secret := string(a.Value)
	if text := ""; json.Unmarshal(a.Value, &text) == nil {
		secret = text
	}
	if secret == "" {
		return ""
	}
	if err := c.veil.add(secret); err != nil {
		return fmt.Sprintf("an answer cannot be kept out of the output: it has fewer than %d bytes, or too many", redact.MinBytes)
	}
	return ""
}
