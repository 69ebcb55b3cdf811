package httpapi

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/access"
	"github.com/toolhost/toolhost/internal/access/tokens"
)

// team is a world with a token of each role, and one more of those that call.
type team struct {
	*world
	store  *tokens.Store
	tokens map[string]string
}

func newTeam(t *testing.T) *team { return newTeamWith(t) }

// newTeamWith has profiles for some of them.
func newTeamWith(t *testing.T, profiles ...access.Profile) *team {
	t.Helper()
	return newTeamOf(t, func(c *Config) {
		if len(profiles) > 0 {
			c.Book = func() access.Book { return access.Book{Admins: ownUsers(), Profiles: profiles} }
		}
	})
}

func newTeamOf(t *testing.T, change func(*Config)) *team {
	t.Helper()
	w := newWorld(t, change)
	m := &team{world: w, store: tokens.Open(filepath.Join(filepath.Dir(w.socket), "state")), tokens: map[string]string{}}
	for name, roles := range map[string][]access.Role{
		"caller": {access.Call}, "other": {access.Call}, "watcher": {access.Watch}, "approver": {access.Approve},
		"admin": {access.Admin}, "metrics": {access.Metrics}, "both": {access.Call, access.Approve},
	} {
		m.add(name, roles, nil)
	}
	return m
}

func (m *team) add(name string, roles []access.Role, patterns []string) {
	m.t.Helper()
	secret, _, err := m.store.Create(tokens.Spec{Name: name, Roles: roles, Tools: patterns, By: "test"})
	if err != nil {
		m.t.Fatal(err)
	}
	m.tokens[name] = secret
}

// as sends a request with the token of a name; none is nobody's.
func (m *team) as(name, method, path, body string, header ...string) (int, string) {
	m.t.Helper()
	if token := m.tokens[name]; token != "" {
		header = append([]string{"Authorization", "Bearer " + token}, header...)
	}
	return m.overTCP(method, path, body, header...)
}

func (m *team) link(name string) string {
	m.t.Helper()
	status, said := m.as(name, "POST", "/api/login-links", "")
	var link api.LoginLink
	if err := json.Unmarshal([]byte(said), &link); err != nil || status != 201 {
		m.t.Fatalf("link: %d %s", status, said)
	}
	return link.Path
}

func (m *team) whoami(token string) (string, []string) {
	m.t.Helper()
	_, said := m.overTCP("GET", "/api/whoami", "", "Authorization", "Bearer "+token)
	var who api.Whoami
	if err := json.Unmarshal([]byte(said), &who); err != nil {
		m.t.Fatalf("%v: %s", err, said)
	}
	return who.Identity, who.Roles
}

// beginAs begins a turn and gives its id.
func (m *team) beginAs(name, spec string) string {
	m.t.Helper()
	status, said := m.as(name, "POST", "/api/turns", spec)
	var begun api.Turn
	if err := json.Unmarshal([]byte(said), &begun); err != nil || status != 201 {
		m.t.Fatalf("begin: %d %s", status, said)
	}
	return begun.TurnID
}

// expected is the matrix: who may ask for a route, about a turn of their own or a
// thing that concerns no turn. It is written down once more, so that no change of the
// table goes unseen.
var expected = map[string]string{
	"GET /api/health":                                "nobody caller watcher approver admin metrics",
	"GET /api/ready":                                 "caller watcher approver admin",
	"GET /metrics":                                   "watcher admin metrics",
	"GET /api/openapi.json":                          "caller watcher approver admin",
	"GET /api/tools":                                 "caller watcher admin",
	"GET /api/workers":                               "admin",
	"POST /api/workers/{worker}/drain":               "admin",
	"POST /api/workers/{worker}/remove":              "admin",
	"POST /api/turns":                                "caller admin",
	"POST /api/calls":                                "caller admin",
	"GET /api/turns/active":                          "caller watcher admin",
	"GET /api/turns/{turnId}":                        "caller watcher admin",
	"POST /api/turns/{turnId}/calls":                 "caller admin",
	"POST /api/turns/{turnId}/model":                 "caller admin",
	"POST /api/turns/{turnId}/abort":                 "caller admin",
	"POST /api/turns/{turnId}/abort-tool/{callId}":   "caller admin",
	"POST /api/turns/{turnId}/end":                   "caller admin",
	"GET /api/turns/{turnId}/events":                 "caller watcher admin",
	"POST /api/turns/{turnId}/interactions":          "caller admin",
	"GET /api/interactions":                          "caller watcher approver admin",
	"POST /api/interactions/{interactionId}/answer":  "approver admin",
	"GET /api/approvals":                             "caller watcher approver admin",
	"POST /api/approvals/{approvalId}/revoke":        "caller approver admin",
	"GET /api/history/turns":                         "caller watcher admin",
	"GET /api/history/calls":                         "caller watcher admin",
	"GET /api/history/turns/{turnId}/events":         "caller watcher admin",
	"GET /api/history/turns/{turnId}/calls/{callId}": "caller watcher admin",
	"POST /api/login-links":                          "caller watcher approver admin",
	"POST /api/login":                                "nobody caller watcher approver admin metrics",
	"GET /api/whoami":                                "caller watcher approver admin",
	"POST /api/logout":                               "caller watcher approver admin",
}

// Every route, for each role: let in, or refused alike whether the thing is there or
// not. A route that is not in expected fails.
func TestRolesByRoutes(t *testing.T) {
	t.Parallel()
	m := newTeam(t)
	if len(expected) != len(routes) {
		t.Errorf("the matrix has %d routes of %d", len(expected), len(routes))
	}
	for _, r := range routes {
		want, listed := expected[r.method+" "+r.path]
		if !listed {
			t.Errorf("%s %s is not in the matrix", r.method, r.path)
		}
		for _, who := range []string{"nobody", "caller", "watcher", "approver", "admin", "metrics"} {
			may := strings.Contains(" "+want+" ", " "+who+" ")
			path := strings.NewReplacer("{turnId}", "none", "{callId}", "none", "{interactionId}", "none", "{approvalId}", "none").Replace(r.path)
			status, said := m.as(who, r.method, path, "", "Accept", "application/json")
			switch {
			case may && (status == 401 || status == 403 && r.path != loginPath):
				t.Errorf("%s %s as %s: %d %s", r.method, r.path, who, status, said)
			case !may && who == "nobody" && status != 401, !may && who != "nobody" && (status != 403 || !strings.Contains(said, "this needs the role")):
				t.Errorf("%s %s as %s: %d %s, which is not a refusal of the role", r.method, r.path, who, status, said)
			}
		}
	}
}

// What is another's is answered byte for byte as what is not there.
func TestOthersThingsAreNotThere(t *testing.T) {
	t.Parallel()
	m := newTeam(t)
	id := m.beginAs("caller", `{"turnId":"mine","sessionId":"s"}`)
	done := make(chan string, 1)
	go func() {
		_, said := m.as("caller", "POST", "/api/turns/"+id+"/calls", `{"calls":[{"id":"held","tool":"work","arguments":{"say":"held","hold":true}},{"id":"asks","tool":"ask"}]}`)
		done <- said
	}()
	m.fakes.await(t, "held", true)
	until(t, "a question", func() bool {
		_, said := m.as("caller", "GET", "/api/interactions", "")
		return strings.Contains(said, `"toolCallId":"asks"`)
	})
	over := m.beginAs("caller", `{}`)
	m.as("caller", "POST", "/api/turns/"+over+"/calls", `{"calls":[{"id":"1","tool":"work"}]}`)
	m.as("caller", "POST", "/api/turns/"+over+"/end", "")

	for _, who := range []string{"other", "both", "watcher", "approver", "metrics", "nobody"} {
		for _, r := range routes {
			if !strings.Contains(r.path, "{turnId}") || who == "watcher" && r.method == "GET" {
				continue
			}
			for _, theirs := range []string{id, over} {
				ask := func(turn string) (int, string) {
					path := strings.NewReplacer("{turnId}", turn, "{callId}", "held").Replace(r.path)
					if theirs == over {
						path = strings.NewReplacer("{turnId}", turn, "{callId}", "1").Replace(r.path)
					}
					body := map[string]string{"calls": `{"calls":[]}`, "model": `{"streaming":true}`, "interactions": `{"kind":"confirm","prompt":"?"}`}[path[strings.LastIndex(path, "/")+1:]]
					status, said := m.as(who, r.method, path, body)
					return status, strings.ReplaceAll(said, turn, "TURN")
				}
				none := strings.Map(func(c rune) rune { return 'x' }, theirs)
				status, said := ask(theirs)
				noStatus, noSaid := ask(none)
				want := 404
				switch {
				case who == "nobody":
					want = 401
				case !strings.Contains(expected[r.method+" "+r.path], "caller") || who != "other" && who != "both":
					want = 403 // for the role, whatever there is
				}
				if status != want || status != noStatus || said != noSaid {
					t.Errorf("%s %s as %s: %d %s, but of none %d %s", r.method, r.path, who, status, said, noStatus, noSaid)
				}
			}
		}
		if who != "other" && who != "both" {
			continue
		}
		for _, list := range []string{"/api/turns/active", "/api/history/turns", "/api/history/calls", "/api/history/calls?turn=" + over} {
			if _, said := m.as(who, "GET", list, ""); strings.Contains(said, "TurnId") || strings.Contains(said, id) || strings.Contains(said, over) {
				t.Errorf("%s as %s: %s", list, who, said)
			}
		}
		if status, said := m.as(who, "POST", "/api/turns", `{"turnId":"mine"}`); status != 201 {
			t.Errorf("a name of its own: %d %s", status, said)
		}
		status, said := m.as(who, "POST", "/api/turns", `{"parentTurnId":"`+id+`"}`)
		noStatus, noSaid := m.as(who, "POST", "/api/turns", `{"parentTurnId":"nosuch"}`)
		if status != noStatus || strings.ReplaceAll(said, id, "nosuch") != noSaid {
			t.Errorf("a child of another's: %d %s, of none %d %s", status, said, noStatus, noSaid)
		}
	}
	m.as("caller", "POST", "/api/turns", `{"turnId":"short"}`)
	m.as("caller", "POST", "/api/turns/short/calls", `{"calls":[{"id":"1","tool":"work"}]}`)
	if _, said := m.as("caller", "GET", "/api/history/calls?turn=short", ""); !strings.Contains(said, `"turnId":"short@`) {
		t.Errorf("the calls of its own turn, by the id that it has given: %s", said)
	}
	if _, said := m.as("other", "GET", "/api/interactions", ""); strings.Contains(said, "asks") {
		t.Errorf("questions of others: %s", said)
	}
	_, said := m.as("caller", "GET", "/api/interactions", "")
	var waiting api.Interactions
	if err := json.Unmarshal([]byte(said), &waiting); err != nil || len(waiting.Interactions) != 1 {
		t.Fatalf("%v: %s", err, said)
	}
	for _, who := range []string{"other", "watcher", "metrics", "nobody"} {
		question := waiting.Interactions[0].ID
		status, said := m.as(who, "POST", "/api/interactions/"+question+"/answer", `{"approve":true}`)
		noStatus, noSaid := m.as(who, "POST", "/api/interactions/nosuch/answer", `{"approve":true}`)
		if status != noStatus || status < 400 || strings.ReplaceAll(said, question, "nosuch") != noSaid {
			t.Errorf("%s answers: %d %s, of none %d %s", who, status, said, noStatus, noSaid)
		}
	}
	if status, said := m.as("caller", "GET", "/api/turns/mine", ""); status != 200 || !strings.Contains(said, `"owner":"token caller"`) {
		t.Errorf("by its own name: %d %s", status, said)
	}
	if status, said := m.as("watcher", "GET", "/api/turns/"+id, ""); status != 200 {
		t.Errorf("a watcher: %d %s", status, said)
	}
	if status, _ := m.as("caller", "POST", "/api/turns/mine/abort", ""); status != 200 {
		t.Errorf("its own abort: %d", status)
	}
	<-done
}

// Nobody approves calls of their own, but for administrators; the trail names who
// has answered.
func TestNobodyApprovesTheirOwn(t *testing.T) {
	t.Parallel()
	m := newTeam(t)
	for _, test := range []struct {
		owner, by string
		status    int
	}{
		{"both", "both", 403},
		{"both", "caller", 403},
		{"both", "watcher", 403},
		{"both", "approver", 200},
		{"caller", "both", 200},
		{"admin", "admin", 200},
	} {
		id := m.beginAs(test.owner, `{}`)
		done := make(chan bool)
		go func() {
			defer close(done)
			m.as(test.owner, "POST", "/api/turns/"+id+"/calls", `{"calls":[{"id":"1","tool":"ask"}]}`)
		}()
		question := ""
		until(t, "a question", func() bool {
			_, said := m.as("watcher", "GET", "/api/turns/"+id, "")
			var info api.Turn
			_ = json.Unmarshal([]byte(said), &info)
			if len(info.PendingInteractions) == 1 {
				question = info.PendingInteractions[0].ID
			}
			return question != ""
		})
		status, said := m.as(test.by, "POST", "/api/interactions/"+question+"/answer", `{"approve":true}`)
		if status != test.status {
			t.Errorf("%s answers for %s: %d %s", test.by, test.owner, status, said)
		}
		if status != 200 {
			m.as("admin", "POST", "/api/interactions/"+question+"/answer", `{}`)
		}
		<-done
		if _, said := m.as("watcher", "GET", "/api/history/turns/"+id+"/events", ""); test.status == 200 && !strings.Contains(said, `"by":"token `+test.by+`"`) {
			t.Errorf("the trail does not name %s: %s", test.by, said)
		}
	}
}

// A tool that is kept from an identity is to it as if there were none.
func TestToolsOfAnIdentity(t *testing.T) {
	t.Parallel()
	m := newTeam(t)
	m.add("narrow", []access.Role{access.Call}, []string{"as*"})
	if _, said := m.as("narrow", "GET", "/api/tools", ""); strings.Contains(said, `"work"`) || !strings.Contains(said, `"ask"`) {
		t.Errorf("the list: %s", said)
	}
	_, hidden := m.as("narrow", "GET", "/api/tools?name=work", "")
	if _, none := m.as("narrow", "GET", "/api/tools?name=nosuch", ""); hidden != none {
		t.Errorf("%s, but of none %s", hidden, none)
	}
	id := m.beginAs("narrow", `{"headless":true}`)
	call := func(tool string) string {
		_, said := m.as("narrow", "POST", "/api/turns/"+id+"/calls", `{"calls":[{"id":"`+tool+`","tool":"`+tool+`"}]}`)
		var results api.Results
		if err := json.Unmarshal([]byte(said), &results); err != nil || len(results.Results) != 1 {
			t.Fatalf("%v: %s", err, said)
		}
		r := results.Results[0]
		return strings.ReplaceAll(string(r.Status)+" "+string(r.Reason)+" "+r.Message, tool, "TOOL")
	}
	if hidden, none := call("work"), call("none"); hidden != none || !strings.HasPrefix(hidden, "invalid_args") {
		t.Errorf("%s, but of none %s", hidden, none)
	}
	if asked := call("ask"); !strings.HasPrefix(asked, "denied headless") {
		t.Errorf("one that it may use: %s", asked)
	}
}

// Who sees everybody's turns means its own by a name that it has given one, as when it
// makes calls there.
func TestItsOwnNameComesFirst(t *testing.T) {
	t.Parallel()
	m := newTeam(t)
	m.add("seer", []access.Role{access.Call, access.Watch}, nil)
	for _, who := range []string{"admin", "seer"} {
		if status, said := m.as(who, "POST", "/api/turns", `{"turnId":"demo"}`); status != 201 {
			t.Fatalf("%s: %d %s", who, status, said)
		}
	}
	for who, owner := range map[string]string{"seer": "token seer", "watcher": "token admin", "admin": "token admin"} {
		if status, said := m.as(who, "GET", "/api/turns/demo", ""); status != 200 || !strings.Contains(said, `"owner":"`+owner+`"`) {
			t.Errorf("as %s: %d %s", who, status, said)
		}
	}
	for _, who := range []string{"seer", "admin"} {
		m.as(who, "POST", "/api/turns/demo/end", "")
	}
	if _, said := m.as("seer", "GET", "/api/history/turns/demo/events", ""); !strings.Contains(said, `"owner":"token seer"`) {
		t.Errorf("on record: %s", said)
	}
}
