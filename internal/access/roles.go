// Package access says who somebody is and what they may do: identities, their
// roles, the tools they may use, and which of other people's affairs they see. It is
// pure: who has authenticated is for others to find out.
package access

import (
	"fmt"
	"slices"
	"strings"
)

// Role is a part of what a daemon does for its clients.
type Role string

// Roles. Admin has all of them.
const (
	// Call: begin turns, make calls in them, and read, abort and end one's own.
	Call Role = "call"
	// Watch: read everything, change nothing.
	Watch Role = "watch"
	// Approve: see the questions that wait for people, and answer those of others.
	Approve Role = "approve"
	// Admin: all that the others may, with everybody's turns and questions.
	Admin Role = "admin"
	// Metrics: read the metrics, and nothing else.
	Metrics Role = "metrics"
)

// AllRoles are in the order of documents.
func AllRoles() []Role { return []Role{Call, Watch, Approve, Admin, Metrics} }

// ParseRoles reads names of roles, each once. There must be one at least.
func ParseRoles(names []string) ([]Role, error) {
	var roles []Role
	for _, name := range names {
		role := Role(name)
		if !slices.Contains(AllRoles(), role) {
			return nil, fmt.Errorf("unknown role %q: it must be one of %s", name, listed())
		}
		if !slices.Contains(roles, role) {
			roles = append(roles, role)
		}
	}
	if len(roles) == 0 {
		return nil, fmt.Errorf("a role is missing: give one or more of %s", listed())
	}
	return roles, nil
}

func listed() string { return NamesOf(AllRoles(), ", ") }

// NamesOf are the names of roles, with a separator between them.
func NamesOf(roles []Role, separator string) string {
	var names []string
	for _, role := range roles {
		names = append(names, string(role))
	}
	return strings.Join(names, separator)
}

// Need lists roles. A request needs any one of them.
type Need []Role

// What requests need; some need the same, for other purposes. The zero Need is nobody's:
// what has been given none is refused.
var (
	// ToRead: whose own turns are shown, or with Watch everybody's.
	ToRead = Need{Call, Watch}
	// ToCall begins turns, and drives one's own.
	ToCall = Need{Call}
	// ToSeeQuestions shows those that wait: with Call alone one's own.
	ToSeeQuestions = Need{Call, Watch, Approve}
	// ToAnswer answers others' questions.
	ToAnswer = Need{Approve}
	// ToRevoke takes back approvals: of one's own calls, with Approve of everybody's.
	ToRevoke = Need{Call, Approve}
	// ToManage is for administrators.
	ToManage = Need{Admin}
	// ToMeasure reads metrics.
	ToMeasure = Need{Metrics, Watch}
	// ToOpen has a browser act for oneself.
	ToOpen = Need{Call, Watch, Approve}
	// ToAsk is for public information: any identity but one with the role metrics alone.
	ToAsk = Need{Call, Watch, Approve}
)

// String names the roles, for messages.
func (n Need) String() string { return NamesOf(n, " or ") }
