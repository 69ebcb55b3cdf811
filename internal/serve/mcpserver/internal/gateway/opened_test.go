package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/internal/tools/mcpcall"
)

// That a human is done at an address is for the client that was asked to open it, once;
// what a server says of another one's reaches nobody.
func TestCompletionsAreForWhoWasAsked(t *testing.T) {
	for _, k := range []kind{kinds[0], kinds[2]} {
		s := play(t, &played{})
		var mu sync.Mutex
		heard := map[string][]string{}
		sessions := map[string]*mcpsdk.ServerSession{}
		for _, name := range []string{"first", "second"} {
			s.connect(t, k, "", &mcpsdk.ClientOptions{ElicitationCompleteHandler: func(_ context.Context, r *mcpsdk.ElicitationCompleteNotificationRequest) {
				mu.Lock()
				defer mu.Unlock()
				heard[name] = append(heard[name], r.Params.ElicitationID)
			}})
			for one := range s.sdk.Sessions() {
				if one != sessions["first"] {
					sessions[name] = one
				}
			}
		}
		ended, end := context.WithCancel(t.Context())
		end()
		asked := func(name, entry, id string) { s.AskedToOpen(ended, sessions[name], Origin{Entry: entry}, id) }
		complete := func(entry, id string) {
			s.Notice(Origin{Entry: entry}, mcpcall.ElicitationComplete, json.RawMessage(fmt.Sprintf(`{"elicitationId":%q}`, id)))
		}
		asked("first", "a", "e-1")
		asked("second", "b", "e-2")
		asked("second", "a", "moved")
		asked("first", "a", "moved")
		for range 2 {
			complete("b", "e-1")
			complete("a", "e-2")
			complete("a", "nosuch")
			complete("a", "e-1")
			complete("a", "moved")
			complete("b", "e-2")
		}
		for name, want := range map[string][]string{"first": {"e-1", "moved"}, "second": {"e-2"}} {
			got := func() []string {
				mu.Lock()
				defer mu.Unlock()
				return slices.Clone(heard[name])
			}
			wait.Until(t, name+" hears", func() bool { return len(got()) >= len(want) })
			if !slices.Equal(got(), want) {
				t.Errorf("%s: %s hears %q, want %q", k.name, name, got(), want)
			}
		}
		for i := range 2 * maxOpened {
			asked("first", "a", fmt.Sprint(i))
		}
		if list := s.opened[sessions["first"]]; len(list) != maxOpened || !list[0].is(Origin{Entry: "a"}, fmt.Sprint(maxOpened)) {
			t.Errorf("%d are remembered", len(list))
		}
	}
}
