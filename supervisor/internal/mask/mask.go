// Package mask takes a call's secrets out of all that the call gives out: text,
// JSON, content, results and streams that are cut anywhere.
package mask

import (
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/toolhost/toolhost/api"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/plugin/wirejson"
	"github.com/toolhost/toolhost/supervisor/internal/redact"
)

// Mask takes a call's secrets out of what the call gives out. The zero value
// has none. It may be used from any goroutine.
type Mask struct {
	set    atomic.Pointer[redact.Set] // grows by the answers to secret questions
	adding sync.Mutex
}

// New hides the secrets.
func New(secrets ...[]byte) (*Mask, error) {
	set, err := redact.New(secrets...)
	v := &Mask{}
	if len(secrets) > 0 {
		v.set.Store(set)
	}
	return v, err
}

// Add hides one more, which takes a while where there is much to hide.
func (v *Mask) Add(secret string) error {
	v.adding.Lock()
	defer v.adding.Unlock()
	set, err := v.set.Load().With([]byte(secret))
	if err == nil {
		v.set.Store(set)
	}
	return err
}

// Text returns s without the secrets, as the methods below do with theirs.
func (v *Mask) Text(s string) string { return v.set.Load().String(s) }

// JSON is Text for JSON, which stays valid.
func (v *Mask) JSON(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return raw
	}
	shown := v.set.Load().JSON(raw)
	if len(shown) > 0 && &shown[0] != &raw[0] && wirejson.Check(shown) != nil { // names may have become equal
		return redact.All()
	}
	return shown
}

// Content is Text for all parts of content.
func (v *Mask) Content(c api.Content) api.Content {
	set := v.set.Load()
	if set == nil {
		return c
	}
	c.Text, c.URI, c.Name, c.MIMEType = set.String(c.Text), set.String(c.URI), set.String(c.Name), set.String(c.MIMEType)
	c.JSON, c.Data, c.Extra = v.JSON(c.JSON), set.Bytes(c.Data), v.JSON(c.Extra)
	return c
}

// Result hides secrets in what did not go through the Mask when it came.
func (v *Mask) Result(r *api.Result) {
	if v.set.Load() == nil {
		return
	}
	r.Structured, r.Meta = v.JSON(r.Structured), v.JSON(r.Meta)
	if r.ToolError != nil {
		r.ToolError.RPC = v.JSON(r.ToolError.RPC)
		r.ToolError.Message, r.ToolError.Stack = v.Text(r.ToolError.Message), v.Text(r.ToolError.Stack)
	}
	for i := range r.Warnings {
		r.Warnings[i] = v.Text(r.Warnings[i])
	}
	for i, warning := range r.Timing.SettingsWarnings {
		r.Timing.SettingsWarnings[i] = v.Text(warning)
	}
	for i := range r.Files {
		r.Files[i].Path = v.Text(r.Files[i].Path)
	}
	r.Retry.Hint = v.Text(r.Retry.Hint)
	if r.Network != nil {
		r.Network = v.network(*r.Network)
	}
}

// network is n, which other calls may have as well, with the names gone over.
func (v *Mask) network(n api.Network) *api.Network {
	n.Flows, n.Refused = slices.Clone(n.Flows), slices.Clone(n.Refused)
	for i, f := range n.Flows {
		n.Flows[i].Name, n.Flows[i].Error = v.Text(f.Name), v.Text(f.Error)
	}
	for i, f := range n.Refused {
		n.Refused[i].Name, n.Refused[i].Why = v.Text(f.Name), v.Text(f.Why)
	}
	return &n
}

// Description goes over what a tool that was granted secrets says of itself.
func (v *Mask) Description(d *pluginv1.DescribeResponse) {
	if v.set.Load() == nil {
		return
	}
	d.Version = v.Text(d.GetVersion())
	for i, warning := range d.GetWarnings() {
		d.Warnings[i] = v.Text(warning)
	}
	if e := d.GetError(); e != nil {
		e.Message, e.Stack = v.Text(e.GetMessage()), v.Text(e.GetStack())
	}
	if s := d.GetServer(); s != nil {
		s.Instructions, s.Protocol, s.Capabilities = v.Text(s.GetInstructions()), v.Text(s.GetProtocol()), v.JSON(s.GetCapabilities())
		for _, list := range [][][]byte{s.GetPrompts(), s.GetResources(), s.GetTemplates()} {
			for i, one := range list {
				list[i] = v.JSON(one)
			}
		}
	}
	for _, tool := range d.GetTools() {
		tool.Extra = v.JSON(tool.GetExtra())
		tool.Name, tool.Title, tool.Description = v.Text(tool.GetName()), v.Text(tool.GetTitle()), v.Text(tool.GetDescription())
		tool.InputSchema, tool.OutputSchema = v.JSON(tool.GetInputSchema()), v.JSON(tool.GetOutputSchema())
		tool.TimeoutArgument = v.Text(tool.GetTimeoutArgument())
		for _, paths := range [][]string{tool.GetWish().GetRead(), tool.GetWish().GetWrite()} {
			for i, path := range paths {
				paths[i] = v.Text(path)
			}
		}
	}
}

// Stream is one stream of bytes, cut anywhere. Its methods may be called from
// any goroutine.
type Stream struct {
	mask *Mask

	mu     sync.Mutex
	set    *redact.Set // that stream uses
	stream *redact.Stream
}

// Stream begins a stream of bytes.
func (v *Mask) Stream() *Stream {
	set := v.set.Load()
	return &Stream{mask: v, set: set, stream: set.NewStream()}
}

// Pass hands on what can be shown of the stream when p is added to it.
func (s *Stream) Pass(p []byte, to func([]byte) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if set := s.mask.set.Load(); set != s.set {
		s.set = set
		s.stream.Use(set)
	}
	if p = s.stream.Write(p); len(p) == 0 {
		return nil
	}
	return to(p)
}

// PassText is Pass for a string, which is not copied where there are no secrets.
func (s *Stream) PassText(text string, to func(string) error) error {
	if s.mask.set.Load() != nil {
		return s.Pass([]byte(text), func(p []byte) error { return to(string(p)) })
	}
	if text == "" { // and nothing is held back
		return nil
	}
	return to(text)
}

// End hands on what was held back. The stream may go on.
func (s *Stream) End(to func([]byte) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handOnRest(to)
}

// EndIfIdle is End, unless something is being handed on at this moment.
func (s *Stream) EndIfIdle(to func([]byte) error) {
	if s.mu.TryLock() {
		defer s.mu.Unlock()
		s.handOnRest(to)
	}
}

func (s *Stream) handOnRest(to func([]byte) error) {
	if rest := s.stream.Close(); len(rest) > 0 {
		_ = to(rest)
	}
	s.stream.Restart()
}
