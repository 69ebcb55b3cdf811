package mcpserver

import (
	"fmt"
	"strings"
	"testing"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/access"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/directory"
	"github.com/toolhost/toolhost/internal/tools/catalog"
)

// What wrapped servers have beside their tools is listed by the rule that decides the
// calls it is read by.
func TestListsAreOfWhatMayBeUsed(t *testing.T) {
	s := &Server{}
	s.rights.s = s
	for _, name := range []string{"a", "b"} {
		s.gateway.servers = append(s.gateway.servers, directory.New([]catalog.Server{serverOf(name, []string{"test://x", name + "://y"}, []string{"file:///{path}", name + ":///{path}"})})...)
	}
	s.gateway.listed.Prompts = map[string]directory.Prompt{"ask": {Entry: "a", Own: "ask"}, "b__ask": {Entry: "b", Own: "ask"}}
	lists := []mcpsdk.Result{
		&mcpsdk.ListPromptsResult{Prompts: []*mcpsdk.Prompt{{Name: "ask"}, {Name: "b__ask"}, {Name: "stale"}}, Cacheable: mcpsdk.Cacheable{CacheScope: "public"}},
		&mcpsdk.ListResourcesResult{Resources: []*mcpsdk.Resource{{URI: "test://x"}, {URI: "toolhost:b/test://x"}, {URI: "a://y"}, {URI: "b://y"}}},
		&mcpsdk.ListResourceTemplatesResult{ResourceTemplates: []*mcpsdk.ResourceTemplate{{URITemplate: "file:///{path}"}, {URITemplate: "toolhost:b/file:///{path}"}, {URITemplate: "b:///{path}"}}},
	}
	for _, test := range []struct {
		name  string
		tools []string
		want  string
	}{
		{"all", nil, "ask b__ask stale | test://x toolhost:b/test://x a://y b://y | file:///{path} toolhost:b/file:///{path} b:///{path}"},
		{"none", []string{}, " |  | "},
		{"a tool of a server", []string{"a__search"}, " |  | "},
		{"one server", []string{"b:*/*"}, "b__ask | toolhost:b/test://x b://y | toolhost:b/file:///{path} b:///{path}"},
		{"resources alone", []string{"a:resources/read"}, " | test://x a://y | file:///{path}"},
	} {
		var got []string
		for _, list := range lists {
			got = append(got, strings.Join(listed(t, s.rights.listFor(access.Identity{Tools: test.tools}, list)), " "))
		}
		if all := strings.Join(got, " | "); all != test.want {
			t.Errorf("%s: %q, want %q", test.name, all, test.want)
		}
	}
	if own := s.rights.listFor(access.Identity{}, lists[0]).(*mcpsdk.ListPromptsResult); own.CacheScope != "private" {
		t.Errorf("caches may share a list: %q", own.CacheScope)
	}
}

// What is kept from somebody is answered as what nobody has: by the SDK, or by the server
// that they may use.
func TestWhatIsKeptFromSomebodyIsNotThere(t *testing.T) {
	loaded := make(chan struct{})
	close(loaded)
	s := &Server{loaded: loaded, config: Config{Access: func(name string) access.Identity {
		return access.Identity{Name: name, Tools: map[string][]string{"none": {}, "b": {"b:*/*"}}[name]}
	}}}
	s.rights.s, s.gateway.s = s, s
	for _, name := range []string{"a", "b"} {
		s.gateway.servers = append(s.gateway.servers, directory.New([]catalog.Server{serverOf(name, []string{name + "://y"}, nil)})...)
	}
	s.gateway.listed.Prompts = map[string]directory.Prompt{"ask": {Entry: "a", Own: "ask"}}
	prompts := map[string]string{"a": "ask", "z": "nosuch"}
	for _, who := range []string{"none", "b"} {
		ctx := WithPeer(t.Context(), Peer{Identity: who})
		asks := map[string]func(string) (string, error){
			"a resource": func(name string) (string, error) {
				entry, own, err := s.gateway.ownerFor(ctx, name+"://y")
				return entry + " " + own, err
			},
			"a resource by its server": func(name string) (string, error) {
				entry, own, err := s.gateway.ownerFor(ctx, "toolhost:"+name+"/x://y")
				return entry + " " + own, err
			},
			"a prompt": func(name string) (string, error) {
				_, err := s.gateway.getPrompt(ctx, &mcpsdk.GetPromptRequest{Params: &mcpsdk.GetPromptParams{Name: prompts[name]}})
				return "", err
			},
			"a completion": func(name string) (string, error) {
				ref := &mcpsdk.CompleteReference{Type: "ref/prompt", Name: prompts[name]}
				_, err := s.gateway.complete(ctx, &mcpsdk.CompleteRequest{Params: &mcpsdk.CompleteParams{Ref: ref}})
				return "", err
			},
		}
		for what, ask := range asks {
			hidden, hiddenErr := ask("a")
			none, noErr := ask("z")
			plain := func(text string, err error) string {
				return strings.NewReplacer("ask", "NAME", "nosuch", "NAME", "z", "NAME", "a:", "NAME:", "/a/", "/NAME/", "toolhost:a", "toolhost:NAME").Replace(fmt.Sprintf("%s, %+v", text, err))
			}
			if plain(hidden, hiddenErr) != plain(none, noErr) {
				t.Errorf("%s asks for %s: %s, %v, but of none %s, %v", who, what, hidden, hiddenErr, none, noErr)
			}
		}
	}
	if entry, _, err := s.gateway.ownerFor(WithPeer(t.Context(), Peer{Identity: "b"}), "b://y"); entry != "b" || err != nil {
		t.Errorf("what one may use: %s, %v", entry, err)
	}
}

// A server hears of other roots from the clients that it has asked, and in their name.
func TestRootsOfOthers(t *testing.T) {
	s := &Server{known: map[*mcpsdk.ServerSession]*known{}}
	asked, other, of := &mcpsdk.ServerSession{}, &mcpsdk.ServerSession{}, &session{peer: Peer{Identity: "uid 1"}}
	s.known[asked], s.known[other] = &known{session: of}, &known{session: &session{peer: Peer{Identity: "uid 2"}}}
	s.closed = true // nothing is sent
	g := &s.gateway
	g.s, g.rooted = s, map[origin]*rooted{{entry: "a"}: {by: map[*session]bool{of: true}}}
	for _, by := range []*mcpsdk.ServerSession{other, {}} {
		if g.rootsChanged(t.Context(), &mcpsdk.RootsListChangedRequest{Session: by}); g.rooted[origin{entry: "a"}].runs {
			t.Error("the server hears of another's roots")
		}
	}
	if g.rootsChanged(t.Context(), &mcpsdk.RootsListChangedRequest{Session: asked}); !g.rooted[origin{entry: "a"}].runs || g.rooted[origin{entry: "a"}].from != "uid 1" {
		t.Errorf("%+v", g.rooted[origin{entry: "a"}])
	}
	g.rooted[origin{entry: "a"}].runs = false
	if g.forgetRoots(of); len(g.rooted) != 0 {
		t.Error("a session that has ended is remembered")
	}
}

func listed(t *testing.T, result mcpsdk.Result) (names []string) {
	t.Helper()
	switch list := result.(type) {
	case *mcpsdk.ListPromptsResult:
		for _, p := range list.Prompts {
			names = append(names, p.Name)
		}
	case *mcpsdk.ListResourcesResult:
		for _, r := range list.Resources {
			names = append(names, r.URI)
		}
	case *mcpsdk.ListResourceTemplatesResult:
		for _, r := range list.ResourceTemplates {
			names = append(names, r.URITemplate)
		}
	default:
		t.Fatalf("%T", result)
	}
	return names
}
