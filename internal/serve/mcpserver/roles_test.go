package mcpserver

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/access"
)

// expectedRoles is the matrix: who may send a method. It is written down once more, so
// that no change of the tables goes unseen.
var expectedRoles = map[string]string{
	"initialize":               "call watch admin",
	"ping":                     "call watch admin",
	"server/discover":          "call watch admin",
	"logging/setLevel":         "call watch admin",
	"tools/list":               "call watch admin",
	"tools/call":               "call admin",
	"prompts/list":             "call watch admin",
	"prompts/get":              "call admin",
	"resources/list":           "call watch admin",
	"resources/templates/list": "call watch admin",
	"resources/read":           "call admin",
	"resources/subscribe":      "call admin",
	"resources/unsubscribe":    "call admin",
	"subscriptions/listen":     "call watch admin",
	"completion/complete":      "call admin",

	"notifications/cancelled":          "call watch admin",
	"notifications/initialized":        "call watch admin",
	"notifications/progress":           "call watch admin",
	"notifications/roots/list_changed": "call watch admin",
}

// Every method that is served, for each role, and for what nobody serves yet.
func TestRolesByMethods(t *testing.T) {
	if len(expectedRoles) != len(methods) {
		t.Errorf("the matrix has %d methods of %d", len(expectedRoles), len(methods))
	}
	for method := range needs {
		if _, served := methods[method]; !served {
			t.Errorf("%s has a role, and is not served", method)
		}
	}
	s := &Server{config: Config{Access: func(name string) access.Identity {
		if name == "nobody" {
			return access.Identity{}
		}
		return access.Identity{Name: name, Roles: []access.Role{access.Role(name)}}
	}}}
	reached := errors.New("it was let through")
	guarded := (&rights{s}).mayDo(func(context.Context, string, mcpsdk.Request) (mcpsdk.Result, error) { return nil, reached })
	check := func(method, want string) {
		for _, who := range []string{"call", "watch", "approve", "admin", "metrics", "nobody"} {
			may := strings.Contains(" "+want+" ", " "+who+" ")
			_, err := guarded(WithPeer(t.Context(), Peer{Identity: who}), method, nil)
			refused, is := errors.AsType[*jsonrpc.Error](err)
			switch {
			case may && !errors.Is(err, reached):
				t.Errorf("%s as %s: %v", method, who, err)
			case !may && (!is || refused.Code != CodeForbidden || !strings.Contains(refused.Message, "this needs the role")):
				t.Errorf("%s as %s: %v, which is not a refusal of the role", method, who, err)
			}
		}
	}
	for method := range methods {
		want, listed := expectedRoles[method]
		if !listed {
			t.Errorf("%s is not in the matrix", method)
		}
		check(method, want)
	}
	listen := &mcpsdk.SubscriptionsListenRequest{Params: &mcpsdk.SubscriptionsListenParams{Notifications: &mcpsdk.NotificationSubscriptions{ResourceSubscriptions: []string{"a://x"}}}}
	for who, may := range map[string]bool{"call": true, "watch": false, "approve": false, "admin": true, "metrics": false, "nobody": false} {
		if _, err := guarded(WithPeer(t.Context(), Peer{Identity: who}), "subscriptions/listen", listen); errors.Is(err, reached) != may {
			t.Errorf("%s listens to a resource, which calls its server: %v", who, err)
		}
	}
	check("tasks/create", "call admin") // what is not known needs what a call does
}
