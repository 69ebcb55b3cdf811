package turn

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// What a server asks for at once keeps its order; a key that is there twice counts once.
func TestInputsKeepTheirOrder(t *testing.T) {
	var in input
	raw := `{"inputRequests":{"z":{"method":"roots/list"},"a":{"method":"no/such"},"m":{"method":"x","params":{"b":1,"a":2}},"a":{"method":"roots/list"}}}`
	if err := json.Unmarshal([]byte(raw), &in); err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, one := range in.InputRequests {
		keys = append(keys, one.key+" "+one.Method+" "+string(one.Params))
	}
	if !slices.Equal(keys, []string{"z roots/list ", `m x {"b":1,"a":2}`, "a roots/list "}) {
		t.Errorf("%q", keys)
	}
	for raw, ok := range map[string]bool{`{"inputRequests":null}`: true, `{"inputRequests":{}}`: true, `{"inputRequests":[]}`: false, `{"inputRequests":{"a":5}}`: false} {
		var in input
		if err := json.Unmarshal([]byte(raw), &in); (err == nil) != ok || len(in.InputRequests) != 0 {
			t.Errorf("%s: %v, %v", raw, in, err)
		}
	}
	list := inputsOf(map[string]supervisor.ClientRequest{"b": {Method: "2"}, "a": {Method: "1"}})
	if len(list) != 2 || list[0].key != "a" || list[1].Method != "2" {
		t.Errorf("%v", list)
	}
}

// People are asked in that order, too, whatever way leads to them.
func TestInputsAreAskedInTheirOrder(t *testing.T) {
	form := func(message string) string {
		return `{"method":"elicitation/create","params":{"message":"` + message + `","requestedSchema":{"type":"object"}}}`
	}
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			s := &server{wants: []string{`{"z":` + form("1") + `,"a":` + form("2") + `,"k":{"method":"no/such"},"m":` + form("3") + `,"b":` + form("4") + `}`}}
			var asked []string
			shown := make(chan []api.Interaction, 1)
			m := New(Config{Start: s.start, Interactor: silent{}, Tool: func(string) (Tool, bool) { return Tool{Name: "work"}, true }, Observe: func(records []Record) {
				for _, r := range records {
					if r.Event.Kind == api.EventInteractionRequest {
						asked = append(asked, r.Event.Prompt)
					}
				}
			}})
			turn, err := m.Begin(Spec{})
			if err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(time.Second, func() {
				info, _ := turn.Info()
				shown <- info.PendingInteractions
			})
			run(t, turn, Call{ID: "a", Tool: "work"})
			turn.End()
			if seen := <-shown; strings.Join(asked, "") != "1234" || len(seen) != 4 {
				t.Errorf("asked %q, and shown %v", asked, seen)
			}
		})
	}
}

// A result says that nobody was there for what its server has asked in place of it, unless
// the question has a default.
func TestInputsThatNobodyIsAskedFor(t *testing.T) {
	for field, want := range map[string]api.Reason{`{"type":"boolean"}`: api.ReasonHeadless, `{"type":"boolean","default":true}`: ""} {
		synctest.Test(t, func(t *testing.T) {
			s := &server{wants: []string{`{"q":{"method":"elicitation/create","params":{"message":"Sure?","requestedSchema":{"type":"object","properties":{"ok":` + field + `},"required":["ok"]}}}}`}}
			m := New(Config{Start: s.start, Tool: func(string) (Tool, bool) { return Tool{Name: "work"}, true }})
			turn, err := m.Begin(Spec{Headless: true})
			if err != nil {
				t.Fatal(err)
			}
			defer turn.End()
			if r := run(t, turn, Call{ID: "a", Tool: "work"})[0]; !r.OK() || r.Reason != want {
				t.Errorf("%s: %s %q, want %q", field, r.Status, r.Reason, want)
			}
		})
	}
}

// silent asks nobody.
type silent struct{}

func (silent) Ask(ctx context.Context, _ api.Interaction) (api.Answer, error) {
	<-ctx.Done()
	return api.Answer{}, ctx.Err()
}
