package turn

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
)

// Where nobody can say whom approvals are for, they cover nothing and are kept.
func TestApprovalsOfWhomNobodyKnows(t *testing.T) {
	var unknown error
	var saved []KeptApproval
	a := NewApprovals(ApprovalOptions{
		Save:   func(list []KeptApproval) error { saved = slices.Clone(list); return nil },
		Stands: func(api.Approval) (bool, error) { return unknown == nil, unknown },
	})
	lasting := api.Answer{For: api.ForIdentity}
	one, err := a.give(approvable{owner: "token a"}, lasting)
	if err != nil {
		t.Fatal(err)
	}
	unknown = errors.New("cannot read the tokens")
	if _, err := a.give(approvable{owner: "token b"}, lasting); !errors.Is(err, unknown) {
		t.Errorf("given: %v", err)
	}
	if list := a.List(); len(list) != 1 || a.hold(approvable{owner: "token a"}) {
		t.Errorf("listed %+v, and it may cover calls", list)
	}
	unknown = nil
	if !a.hold(approvable{owner: "token a"}) || a.Flush() != nil || len(saved) != 1 || saved[0].ID != one.ID {
		t.Errorf("it covers nothing any more, and saved is %+v", saved)
	}
}

// One that would be over at once is refused, and one that cannot be saved takes no other with it.
func TestApprovalsThatWouldNotStand(t *testing.T) {
	var full error
	looks := 0
	a := NewApprovals(ApprovalOptions{
		Save: func([]KeptApproval) error { return full },
		Stands: func(one api.Approval) (bool, error) {
			switch one.Owner {
			case "token kept":
				return true, nil
			case "token fleeting":
				looks++
				return looks == 1, nil
			}
			return false, nil
		},
	})
	give := func(owner string) error {
		_, err := a.give(approvable{owner: owner}, api.Answer{For: api.ForIdentity})
		return err
	}
	if err := give("token kept"); err != nil {
		t.Error(err)
	}
	if err := give("token over"); err == nil || !strings.Contains(err.Error(), "clock") {
		t.Errorf("given: %v", err)
	}
	full = errors.New("no space left")
	if err := give("token fleeting"); !errors.Is(err, full) {
		t.Errorf("given: %v", err)
	}
	if list := a.List(); len(list) != 1 || list[0].Owner != "token kept" {
		t.Errorf("%+v", list)
	}
}
