package access

import (
	"slices"
	"testing"
)

// What each role may do is this table; nothing else decides it.
func TestRoles(t *testing.T) {
	const own, others = "uid 1", "uid 2"
	type may struct {
		read, call, questions, answer, manage, measure, open bool
		seesOwn, seesOthers, drivesOwn, drivesOthers         bool
		answersOwn, answersOthers, seesOthersQuestions       bool
	}
	for role, want := range map[Role]may{
		"":      {},
		"other": {},
		Call:    {read: true, call: true, questions: true, open: true, seesOwn: true, drivesOwn: true},
		Watch:   {read: true, questions: true, measure: true, open: true, seesOwn: true, seesOthers: true, seesOthersQuestions: true},
		Approve: {questions: true, answer: true, open: true, answersOthers: true, seesOthersQuestions: true},
		Metrics: {measure: true},
		Admin: {
			read: true, call: true, questions: true, answer: true, manage: true, measure: true, open: true, seesOwn: true, seesOthers: true,
			drivesOwn: true, drivesOthers: true, answersOwn: true, answersOthers: true, seesOthersQuestions: true,
		},
	} {
		i := Identity{Name: own, Roles: []Role{role}}
		got := may{
			i.Has(ToRead), i.Has(ToCall), i.Has(ToSeeQuestions), i.Has(ToAnswer), i.Has(ToManage), i.Has(ToMeasure), i.Has(ToOpen),
			i.Sees(own), i.Sees(others), i.Drives(own), i.Drives(others), i.Answers(own), i.Answers(others), i.SeesQuestions(others),
		}
		if got != want {
			t.Errorf("%q may %+v, want %+v", role, got, want)
		}
		if i.Has(nil) {
			t.Errorf("%q may do what nobody may", role)
		}
		if i.Sees("") != (role == Watch || role == Admin) || i.Drives("") != (role == Admin) {
			t.Errorf("%q owns what nobody owns", role)
		}
	}
	both := Identity{Name: own, Roles: []Role{Call, Approve}}
	if both.Answers(own) || !both.Answers(others) {
		t.Error("a caller who approves must not do so for itself")
	}
	if nobody := (Identity{Roles: []Role{Call}}); nobody.Owns("") || nobody.Drives("") {
		t.Error("an identity without a name owns turns without an owner")
	}
}

func TestUsers(t *testing.T) {
	group := uint32(100)
	book := Book{Admins: []uint32{0, 7}, Guests: []uint32{1}, Profiles: []Profile{
		{Name: "group", Group: &group, Roles: []Role{Watch}},
		{Name: "user", UIDs: []uint32{2, 7}, Roles: []Role{Approve}, Tools: []string{"x"}},
		{Name: "nothing", UIDs: []uint32{5}},
	}}
	for _, test := range []struct {
		uid    uint32
		groups []uint32
		roles  []Role // nil may not connect
	}{
		{0, nil, []Role{Admin}},
		{7, nil, []Role{Admin}},
		{1, nil, []Role{Call}},
		{1, []uint32{100}, []Role{Watch}},
		{2, []uint32{100}, []Role{Approve}},
		{3, []uint32{1, 100}, []Role{Watch}},
		{4, []uint32{1}, nil},
	} {
		i, ok := book.OfUser(test.uid, test.groups)
		if ok != (test.roles != nil) || !slices.Equal(i.Roles, test.roles) {
			t.Errorf("uid %d of %v: %v %t, want %v", test.uid, test.groups, i.Roles, ok, test.roles)
		}
	}
	if i, _ := book.OfUser(7, nil); !i.MayUse("y") || i.Name != "uid 7" {
		t.Errorf("an administrator is held to a profile: %+v", i)
	}
	if i, ok := book.OfUser(5, nil); !ok || i.Has(ToAsk) {
		t.Error("a profile without roles may do something")
	}
	if _, ok := (Book{}).OfUser(0, nil); ok {
		t.Error("an empty book knows root")
	}
	book.GuestRoles = []Role{Admin}
	if i, ok := book.OfUser(1, nil); !ok || !i.IsAdmin() {
		t.Errorf("a guest with roles: %+v", i)
	}
	if i, ok := book.OfUser(1, []uint32{100}); !ok || i.IsAdmin() {
		t.Errorf("a guest with roles whom a profile names: %+v", i)
	}
	book.GuestRoles, book.AnyUser = nil, true
	if i, ok := book.OfUser(4, nil); !ok || !slices.Equal(i.Roles, []Role{Call}) {
		t.Errorf("any user: %+v", i)
	}
}

// An identity that was found by one book is by the next what that says of it.
func TestCurrent(t *testing.T) {
	group := uint32(100)
	guests := Book{Guests: []uint32{1}}
	user, _ := guests.OfUser(1, []uint32{group})
	token := guests.OfToken("ci", []Role{Call}, []string{"fs_*"})
	next := Book{Guests: []uint32{1}, Profiles: []Profile{{Name: "ci", Tools: []string{"fs_read"}}, {Name: "group", Group: &group, Roles: []Role{Watch}}}}
	if now := next.Current(user); now.Name != "uid 1" || now.Profile.Name != "group" || !slices.Equal(now.Roles, []Role{Watch}) {
		t.Errorf("a user with a profile by now: %+v", now)
	}
	if now := next.Current(token); now.Name != "token ci" || !now.MayUse("fs_read") || now.MayUse("fs_write") || !now.Has(ToCall) {
		t.Errorf("a token with a profile by now: %+v", now)
	}
	if now := guests.Current(next.Current(token)); !now.MayUse("fs_write") || now.MayUse("git") {
		t.Errorf("a token without its profile: %+v", now)
	}
	gone := Book{}.Current(user)
	if gone.Name != "uid 1" || gone.MayUse("x") || gone.Has(ToAsk) {
		t.Errorf("a user who may not connect any more: %+v", gone)
	}
	if back := guests.Current(gone); !back.MayUse("x") || !back.Has(ToCall) {
		t.Errorf("a user who may again: %+v", back)
	}
	if child := next.Current(Identity{Name: "call 1"}); child.Name != "call 1" || !child.MayUse("x") {
		t.Errorf("what no book has found: %+v", child)
	}
}

func TestTools(t *testing.T) {
	book := Book{Profiles: []Profile{{Name: "ci", Tools: []string{"git_*", "fs_read"}}, {Name: "none", Tools: []string{}}}}
	for _, test := range []struct {
		token string
		tools []string
		tool  string
		may   bool
	}{
		{"ci", nil, "git_log", true},
		{"ci", nil, "git", false},
		{"ci", nil, "fs_read", true},
		{"ci", nil, "fs_reads", false},
		{"ci", []string{"*"}, "fs_write", false},
		{"ci", []string{"fs_*"}, "git_log", false},
		{"ci", []string{"fs_*"}, "fs_read", true},
		{"other", nil, "anything", true},
		{"other", []string{}, "anything", false},
		{"other", []string{"["}, "[", false},
		{"none", nil, "anything", false},
	} {
		if i := book.OfToken(test.token, []Role{Call}, test.tools); i.MayUse(test.tool) != test.may {
			t.Errorf("%s with %q may use %s: %t", test.token, test.tools, test.tool, !test.may)
		}
	}
	for pattern, good := range map[string]bool{"*": true, "a?": true, "[ab]": true, "": false, "[": false, "a\\": false} {
		if (CheckPattern(pattern) == "") != good {
			t.Errorf("pattern %q: %s", pattern, CheckPattern(pattern))
		}
	}
}

func TestRolesAreRead(t *testing.T) {
	if roles, err := ParseRoles([]string{"call", "watch", "call"}); err != nil || !slices.Equal(roles, []Role{Call, Watch}) {
		t.Errorf("%v %v", roles, err)
	}
	for _, bad := range [][]string{nil, {""}, {"root"}, {"call", "Admin"}} {
		if _, err := ParseRoles(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
