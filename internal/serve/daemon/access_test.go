package daemon

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/go-hclog"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/client"
	"github.com/toolhost/toolhost/internal/access"
	"github.com/toolhost/toolhost/internal/access/tokens"
	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/turn"
)

// bearing is a transport that sends a token.
type bearing struct{ token string }

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

// A team: what one may use and see over HTTP and MCP is its own, revoking is at once,
// and all of it is on record.
func TestATeamSharesADaemon(t *testing.T) {
	w := newWorld(t, "access: {narrow: {deny: [work], quota: {turns: 1}}}\n")
	w.Listen = "127.0.0.1:0"
	d := w.command().start()
	d.waitReady()
	store := tokens.Open(w.State)
	add := func(name string, patterns []string, roles ...access.Role) string {
		secret, _, err := store.Create(tokens.Spec{Name: name, Roles: roles, Tools: patterns, By: "uid 0"})
		if err != nil {
			t.Fatal(err)
		}
		return secret
	}
	narrow, wide, watcher := add("narrow", []string{"work", "li*"}, access.Call), add("wide", nil, access.Call), add("watcher", nil, access.Watch)
	address := d.tcp()
	as := func(token string) *client.Client {
		c, err := client.New(client.Options{URL: address, Token: token})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	one := as(narrow)
	first, err := one.Begin(wait.Context(t), api.TurnSpec{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := one.Begin(wait.Context(t), api.TurnSpec{}); err == nil || !strings.Contains(err.Error(), "cannot begin a turn: too many turns of its owner are active: token narrow may have 1 at once (access: quota: turns): end some, and begin it then") {
		t.Errorf("a turn beyond the quota: %v", err)
	}
	results, err := one.Run(wait.Context(t), first.TurnID, []api.Call{{ID: "1", Tool: "work"}, {ID: "2", Tool: "lines", Arguments: json.RawMessage(`{"text":"x"}`)}})
	if err != nil || results[0].Status != api.StatusDenied || results[1].Status != api.StatusOK {
		t.Errorf("%+v, %v", results, err)
	}
	if _, err := as(wide).Turn(wait.Context(t), first.TurnID); !client.IsNotFound(err) {
		t.Errorf("another's turn: %v", err)
	}
	if _, err := as(watcher).Turn(wait.Context(t), first.TurnID); err != nil {
		t.Errorf("a watcher: %v", err)
	}
	list := func(token string) (names []string, call error) {
		c := mcpsdk.NewClient(&mcpsdk.Implementation{Name: "test"}, nil)
		session, err := c.Connect(wait.Context(t), &mcpsdk.StreamableClientTransport{Endpoint: address + mcpPath, HTTPClient: &http.Client{Transport: bearing{token}}, MaxRetries: -1}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		tools, err := session.ListTools(wait.Context(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range tools.Tools {
			names = append(names, tool.Name)
		}
		_, call = session.CallTool(wait.Context(t), &mcpsdk.CallToolParams{Name: "nosuch"})
		_, hidden := session.CallTool(wait.Context(t), &mcpsdk.CallToolParams{Name: "work"})
		if token != narrow && call != nil && hidden != nil && strings.ReplaceAll(hidden.Error(), "work", "nosuch") != call.Error() {
			t.Errorf("a hidden tool: %v, but of none %v", hidden, call)
		}
		return names, call
	}
	hidden := add("hidden", []string{"lines"}, access.Call)
	if names, _ := list(hidden); strings.Join(names, " ") != "lines session_status" {
		t.Errorf("hidden is listed %q", names)
	}
	if names, call := list(watcher); len(names) != 3 || call == nil || !strings.Contains(call.Error(), "this needs the role call") {
		t.Errorf("a watcher has %q, and may call: %v", names, call)
	}
	if _, err := store.Revoke("narrow", "uid 0"); err != nil {
		t.Fatal(err)
	}
	if _, err := one.Turn(wait.Context(t), first.TurnID); err == nil || client.IsNotFound(err) {
		t.Errorf("a revoked token: %v", err)
	}
	wait.Until(t, "the turns of the revoked token are aborted, on record", func() bool {
		reader, err := journal.OpenReader(w.State)
		if err != nil {
			return false
		}
		defer reader.Close()
		said := ""
		err = reader.Audits(0, func(a journal.Audit) bool { said += a.Who + " " + a.Action + " " + a.What + "\n"; return true })
		return err == nil && strings.Contains(said, "uid 0 token.create narrow") && strings.Contains(said, "uid 0 token.revoke narrow") && strings.Contains(said, "access.refused GET /api/turns/")
	})
}

// A turn that outlives a reload is held to what its owner has from then on, also where the
// configuration had nothing for them before.
func TestATurnIsHeldToAnEntryThatComesLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.Listen = "127.0.0.1:0"
	secret, _, err := tokens.Open(w.State).Create(tokens.Spec{Name: "ci", Roles: []access.Role{access.Call}, By: "uid 0"})
	if err != nil {
		t.Fatal(err)
	}
	d := w.command().start()
	d.waitReady()
	if w.client, err = client.New(client.Options{URL: d.tcp(), Token: secret}); err != nil {
		t.Fatal(err)
	}
	defer w.client.Close()
	id := w.begin()
	w.configure("access: {ci: {tools: [work], deny: [work]}}\n")
	d.signal(syscall.SIGHUP)
	d.waitLog("configuration loaded")
	if o := w.run(id, api.Call{ID: "1", Tool: "work"}); o.err != nil || o.result.Status != api.StatusDenied || o.result.Reason != "policy" {
		t.Errorf("a tool that is denied by now: %+v %v", o.result, o.err)
	}
	if o := w.run(id, api.Call{ID: "2", Tool: "lines"}); o.err != nil || o.result.OK() || o.result.Status == api.StatusDenied {
		t.Errorf("a tool that is not its own by now: %+v %v", o.result, o.err)
	}
}

// What a revoked token has begun is aborted, and not what another one of its name has begun
// since.
func TestRevokingAbortsOnlyWhatTheTokenHasBegun(t *testing.T) {
	t.Parallel()
	d := &daemon{tokens: tokens.Open(t.TempDir()), turns: turn.New(turn.Config{Tool: func(string) (turn.Tool, bool) { return turn.Tool{}, false }})}
	defer d.turns.Close()
	d.trail.logger = hclog.NewNullLogger()
	begin := func(id string) {
		t.Helper()
		if _, _, err := d.tokens.Create(tokens.Spec{Name: "ci", Roles: []access.Role{access.Call}}); err != nil {
			t.Fatal(err)
		}
		if _, err := d.turns.Begin(turn.Spec{ID: id, Owner: "token ci"}); err != nil {
			t.Fatal(err)
		}
	}
	begin("old")
	d.watchTokens()
	if _, err := d.tokens.Revoke("ci", "uid 0"); err != nil {
		t.Fatal(err)
	}
	begin("new")
	d.watchTokens()
	for id, aborted := range map[string]bool{"old": true, "new": false} {
		if _, err := d.turns.Begin(turn.Spec{ParentID: id}); errors.Is(err, turn.ErrParentOver) != aborted {
			t.Errorf("the turn %s is aborted: %t", id, !aborted)
		}
	}
}

// Calls that begin turns below their own are identities too, and very many.
func TestCallsThatBeginTurnsAreNotKept(t *testing.T) {
	d := &daemon{}
	ada := access.Identity{Name: "uid 1000"}
	for _, name := range []string{"call 1 of turn a", "call 2 of turn a"} {
		d.claim(access.Identity{Name: name}, &turn.Spec{ParentID: "a"})
	}
	d.claim(ada, &turn.Spec{})
	d.owners.Range(func(name, _ any) bool {
		if name != ada.Name {
			t.Errorf("%v is kept", name)
		}
		return true
	})
	if _, known := d.owners.Load(ada.Name); !known {
		t.Error("an owner is not known")
	}
}
