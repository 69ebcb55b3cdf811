package httpapi

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
)

// approveAlways has the approver give one for all calls of a caller's.
func (m *team) approveAlways(owner string) api.Approval {
	m.t.Helper()
	id := m.beginAs(owner, `{}`)
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.as(owner, "POST", "/api/turns/"+id+"/calls", `{"calls":[{"id":"1","tool":"ask"}]}`)
	}()
	question := ""
	until(m.t, "a question", func() bool {
		_, said := m.as("watcher", "GET", "/api/turns/"+id, "")
		var info api.Turn
		_ = json.Unmarshal([]byte(said), &info)
		for _, i := range info.PendingInteractions {
			question = i.ID
			if i.Owner != "token "+owner || strings.Join(i.Always, " ") != "turn identity" {
				m.t.Errorf("of %q, for %q", i.Owner, i.Always)
			}
		}
		return question != ""
	})
	if status, said := m.as("approver", "POST", "/api/interactions/"+question+"/answer", `{"approve":true,"always":true,"for":"identity"}`); status != 200 {
		m.t.Fatalf("%d %s", status, said)
	}
	<-done
	for _, one := range m.approvalsOf("admin") {
		if one.Owner == "token "+owner {
			return one
		}
	}
	m.t.Fatalf("no approval of %s is in force", owner)
	return api.Approval{}
}

func (m *team) approvalsOf(who string) []api.Approval {
	m.t.Helper()
	status, said := m.as(who, "GET", "/api/approvals", "")
	var list api.Approvals
	if err := json.Unmarshal([]byte(said), &list); err != nil || status != 200 {
		m.t.Fatalf("%d %s", status, said)
	}
	return list.Approvals
}

// Approvals are seen by whose calls they are for and by who may see all, and taken back
// by the first and by those who answer. To others they are not there.
func TestApprovalsOfOthers(t *testing.T) {
	t.Parallel()
	m := newTeam(t)
	for who, sees := range map[string]bool{"caller": true, "other": false, "watcher": true, "approver": true, "both": true, "admin": true} {
		one := m.approveAlways("caller")
		if got := m.approvalsOf(who); (len(got) == 1) != sees || len(got) > 1 || sees && (got[0].ID != one.ID || got[0].By != "token approver") {
			t.Errorf("%s sees %+v", who, got)
		}
		revoke := func(id string) (int, string) {
			status, said := m.as(who, "POST", "/api/approvals/"+id+"/revoke", "")
			return status, strings.ReplaceAll(said, id, "ID")
		}
		none, noneSaid := revoke("nosuch")
		status, said := revoke(one.ID)
		switch who {
		case "watcher":
			if status != 403 || none != 403 {
				t.Errorf("a watcher revokes: %d, %d", status, none)
			}
		case "other":
			if status != 404 || status != none || said != noneSaid {
				t.Errorf("another revokes: %d %s, of none %d %s", status, said, none, noneSaid)
			}
		default:
			if status != 200 || none != 404 {
				t.Errorf("%s revokes: %d %s, of none %d", who, status, said, none)
			}
			if again, _ := revoke(one.ID); again != 404 {
				t.Errorf("%s revokes it again: %d", who, again)
			}
		}
		if status != 200 {
			m.as("admin", "POST", "/api/approvals/"+one.ID+"/revoke", "")
		}
		if left := m.approvalsOf("admin"); len(left) != 0 {
			t.Errorf("after %s: %+v", who, left)
		}
	}
}
