package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/text"
	"github.com/toolhost/toolhost/internal/tools/mcpcall"
)

// Versions of the protocol that the adapter speaks: from statelessSince on a
// server is not initialized, and each request says who makes it.
const (
	versionInitialize = "2025-11-25"
	statelessSince    = "2026-07-28"
)

// metaLogLevel and metaSubscription stand in _meta. The SDK's own constant of the first
// is deprecated, as logging is.
const (
	metaLogLevel     = "io.modelcontextprotocol/logLevel"
	metaSubscription = mcpsdk.MetaKeySubscriptionID
)

// discoverTime is how long a server may take to answer server/discover before it is
// initialized, as one that does not know it; startTimeout may leave less. Where it was
// only slow to start, it is asked again, for as long as startTimeout leaves.
const discoverTime = 2 * time.Second

// identity is what a server says of itself.
type identity struct {
	ProtocolVersion string          `json:"protocolVersion"`
	Capabilities    json.RawMessage `json:"capabilities"`
	Instructions    string          `json:"instructions"`
	ServerInfo      struct {
		Version string `json:"version"`
	} `json:"serverInfo"`
}

// has says whether a server has declared a capability.
func (s identity) has(name string) bool {
	var all map[string]json.RawMessage
	return json.Unmarshal(s.Capabilities, &all) == nil && len(all[name]) > 0 && string(all[name]) != "null"
}

func (s *session) stateless() bool { return s.server.ProtocolVersion >= statelessSince }

// errUnknownWay is why another way to begin is tried.
var errUnknownWay = errors.New("the server does not know this way to begin")

var errUnsupported = errors.New("unsupported protocol version")

// discover asks a server what it is, as the newest protocol has it. It may be one that
// knows initialize alone, and does not answer.
func (s *session) discover(ctx context.Context) error {
	return s.discoverWithin(ctx, min(discoverTime, s.options.StartTimeout/2))
}

func (s *session) discoverWithin(ctx context.Context, limit time.Duration) error {
	asking, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	s.server.ProtocolVersion = statelessSince
	p := params{"_meta": s.ownMeta()}
	raw, err := s.answer(asking, "server/discover", p)
	if refusedOnly(err) {
		raw, err = s.answer(asking, "server/discover", p)
	}
	s.server.ProtocolVersion = ""
	if err != nil {
		if ctx.Err() != nil || s.wire.ended() {
			return err
		}
		return errUnknownWay
	}
	var said struct {
		identity
		SupportedVersions []string `json:"supportedVersions"`
		Meta              struct {
			ServerInfo json.RawMessage `json:"io.modelcontextprotocol/serverInfo"`
		} `json:"_meta"`
	}
	if json.Unmarshal(raw, &said) != nil || !slices.Contains(said.SupportedVersions, statelessSince) {
		return errUnknownWay
	}
	_ = json.Unmarshal(said.Meta.ServerInfo, &said.ServerInfo) // where it stands in this protocol
	s.server = said.identity
	s.server.ProtocolVersion = statelessSince
	return nil
}

// refusedOnly says whether a server refuses a version and names that same one as one
// that it takes: then it is asked for it once more, as the protocol has it.
func refusedOnly(err error) bool {
	rpc, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || rpc.Code != mcpsdk.CodeUnsupportedProtocolVersion {
		return false
	}
	var data struct {
		Supported []string `json:"supported"`
	}
	return json.Unmarshal(rpc.Data, &data) == nil && slices.Contains(data.Supported, statelessSince)
}

// initialize begins as all protocols before that have it.
func (s *session) initialize(ctx context.Context) error {
	raw, err := s.answer(ctx, "initialize", params{
		"protocolVersion": versionInitialize, "clientInfo": s.self(), "capabilities": capabilitiesOf(clientOfHost),
	})
	if err != nil {
		return err
	}
	var said identity
	if err := json.Unmarshal(raw, &said); err != nil {
		return fmt.Errorf("the answer cannot be read: %w", err)
	}
	if said.ProtocolVersion >= statelessSince || !slices.Contains(mcpsdk.SupportedProtocolVersions(), said.ProtocolVersion) {
		return fmt.Errorf("%w: %q", errUnsupported, text.Begin(said.ProtocolVersion, 100))
	}
	s.server = said
	return s.wire.notify("notifications/initialized", params{})
}

// initializeOrDiscover is for a server that may know discover alone, and refuse
// initialize with any error, or agree to what has no initialize: nothing is left to try
// that the time would be for. Where it does not answer discover either, the error is that
// of initialize.
func (s *session) initializeOrDiscover(ctx context.Context) error {
	err := s.initialize(ctx)
	if _, refused := errors.AsType[*jsonrpc.Error](err); !refused && !errors.Is(err, errUnsupported) {
		return err
	}
	if found := s.discoverWithin(ctx, s.options.StartTimeout); !errors.Is(found, errUnknownWay) && ctx.Err() == nil {
		return found
	}
	return err
}

// answer makes a request of the session's own.
func (s *session) answer(ctx context.Context, method string, p params) (json.RawMessage, error) {
	e, _, err := s.wire.roundTrip(ctx, method, p, func(*exchange) {})
	switch {
	case errors.Is(err, errNoAnswer) && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	case e.answer.Error != nil:
		return nil, e.answer.Error
	}
	return e.answer.Result, nil
}

// self is how the adapter introduces itself.
func (s *session) self() *mcpsdk.Implementation {
	return &mcpsdk.Implementation{Name: "toolhost", Version: s.options.Version}
}

// clientOfHost stands for the client of no call. It declares what any client of the
// host may have: what the one of a call has not is refused when it is asked for.
var clientOfHost = mcpcall.Client{Capabilities: json.RawMessage(`{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{},` +
	`"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}`)}

// people are who a host asks without a client of MCP.
var people = json.RawMessage(`{"elicitation":{"form":{}},"roots":{}}`)

func capabilitiesOf(client mcpcall.Client) json.RawMessage {
	if len(client.Capabilities) == 0 {
		return people
	}
	return client.Capabilities
}

// logLevel is the level from which on messages of a server are kept, unless a client sets
// another.
const logLevel = "info"

// logLevelOf is the level from which on a server's messages are wanted for a call: its
// client's, or that of the host's record, whichever has more.
func logLevelOf(client mcpcall.Client) string {
	if at := slices.Index(mcpcall.LogLevels, client.LogLevel); at >= 0 && at < slices.Index(mcpcall.LogLevels, logLevel) {
		return client.LogLevel
	}
	return logLevel
}

// wants says whether the client of a call wants messages of a level.
func (c *call) wants(level string) bool {
	at := slices.Index(mcpcall.LogLevels, level)
	return at < 0 || at >= slices.Index(mcpcall.LogLevels, logLevelOf(c.client))
}

// levelFor asks for the server's log from the level on that a call wants, where the
// protocol has one level for all. Nothing depends on it.
func (s *session) levelFor(c *call) {
	level := logLevelOf(c.client)
	s.mu.Lock()
	same := s.level == level
	s.level = level
	s.mu.Unlock()
	if same || s.stateless() || !s.server.has("logging") {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.options.StartTimeout)
	sent := make(chan struct{})
	go func() {
		defer cancel()
		e := newExchange()
		defer s.wire.forget(e)
		err := s.wire.request(e, "logging/setLevel", params{"level": level})
		close(sent)
		if err != nil {
			return
		}
		select {
		case <-e.done:
		case <-s.wire.over:
		case <-ctx.Done():
		}
	}()
	select {
	case <-sent: // before the call itself
	case <-c.ctx.Done():
	}
}

func asError(r *jsonrpc.Response) (*jsonrpc.Error, bool) {
	return errors.AsType[*jsonrpc.Error](r.Error)
}
