package mcpserver

import (
	"slices"
	"testing"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/tools/catalog"
)

// URIs are the servers' own business: also those that package url cannot parse are listed as
// they are, and read.
func TestResourcesWhoseURIsGoCannotParse(t *testing.T) {
	uris := []string{"obsidian://My Vault/n.md", "postgres://u:p@h:54x/db", "screen://1 2", "test://plain", "x://100%/y"}
	ofEachKind(t, func(t *testing.T, k kind) {
		p := &played{}
		servers := []catalog.Server{serverOf("a", uris, nil)}
		s := playedServers(t, p, servers...)
		client := connect(t, s, k, nil)
		listed := func() (list []string) {
			found, err := client.ListResources(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, one := range found.Resources {
				list = append(list, one.URI)
			}
			slices.Sort(list)
			return list
		}
		if got := listed(); !slices.Equal(got, uris) {
			t.Errorf("listed: %q", got)
		}
		for _, uri := range uris {
			_, _ = client.ReadResource(t.Context(), &mcpsdk.ReadResourceParams{URI: uri}) // with nothing in it
			if p.times("a:resources/read "+uri) != 1 {
				t.Errorf("%q is not read: %q", uri, p.asked)
			}
		}
		servers[0].Offers = serverOf("a", uris[:1], nil).Offers
		if problems := s.Reload(t.Context()); len(problems) != 0 {
			t.Error(problems)
		}
		if got := listed(); !slices.Equal(got, uris[:1]) {
			t.Errorf("listed in the end: %q", got)
		}
	})
}
