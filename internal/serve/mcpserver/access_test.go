package mcpserver

import (
	"strings"
	"testing"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/access"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/gateway"
	"github.com/toolhost/toolhost/internal/tools/catalog"
)

// What wrapped servers have beside their tools is listed by the rule that decides the
// calls it is read by.
func TestListsAreOfWhatMayBeUsed(t *testing.T) {
	s := &Server{}
	s.rights.s = s
	var servers []catalog.Server
	for _, name := range []string{"a", "b"} {
		one := serverOf(name, []string{"test://x", name + "://y"}, []string{"file:///{path}", name + ":///{path}"})
		one.Offers.Prompts, one.Entry.MCP.Prefix = [][]byte{[]byte(`{"name":"ask"}`)}, map[string]string{"b": "b"}[name]
		servers = append(servers, one)
	}
	s.gateway = gateway.New(gateway.Host{Servers: func() []catalog.Server { return servers }})
	s.gateway.Attach(mcpsdk.NewServer(&mcpsdk.Implementation{}, nil))
	s.gateway.Describe()
	s.gateway.Offer()
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
