package turn

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/text"
)

// Approvals holds the lasting approvals of all turns of a Manager. Its methods are safe
// for concurrent use.
type Approvals struct {
	options ApprovalOptions

	mu      sync.Mutex
	list    []*KeptApproval
	unsaved bool // Save has been given less than there is, or has kept too much
	used    bool // since Save was given them
}

// ApprovalOptions configures Approvals. With the zero value approvals end with the
// process.
type ApprovalOptions struct {
	// Kept are the approvals for identities that an earlier process saved.
	Kept []KeptApproval
	// Save stores all approvals for identities. It is called when one is given or ends,
	// and by Flush. If a new one cannot be saved, it is not given. If a revocation cannot be
	// saved, Save is called with an empty list, which should need no disk space: it is safer
	// to ask people again. Save is called with a lock held for which calls wait.
	Save func([]KeptApproval) error
	// Stands, if not nil, reports whether an approval's identity is still the same: a
	// name may have a new holder. On an error the approval is kept, but covers nothing
	// until Stands succeeds.
	Stands func(api.Approval) (bool, error)
	// Host describes the host's policy, for calls whose tools have none. Approvals for
	// identities that an earlier process saved with another Host are void.
	Host string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// KeptApproval is an Approval with the key of the calls that it covers.
type KeptApproval struct {
	api.Approval
	// Key is a hash of the program, its rights and, if the approval is restricted to
	// them, the arguments.
	Key string `json:"key"`
}

const (
	// maxApprovals bounds the approvals in force, ownApprovals those of one owner.
	maxApprovals = 8192
	ownApprovals = 1024

	sessionApproval  = 12 * time.Hour
	identityApproval = 30 * 24 * time.Hour

	maxShownArguments = 4 << 10
)

// ErrNoApproval is returned by Revoke if there is no approval of that ID.
var ErrNoApproval = errors.New("no such approval is in force: it was revoked, has expired, or never existed")

// NewApprovals returns approvals for Config.Approvals.
func NewApprovals(o ApprovalOptions) *Approvals {
	if o.Now == nil {
		o.Now = time.Now
	}
	a := &Approvals{options: o}
	for _, one := range o.Kept {
		if one.For == api.ForIdentity && len(a.list) < maxApprovals {
			a.list = append(a.list, &one)
		}
	}
	return a
}

// List returns a copy of the approvals, the oldest first: those in force, those whose
// revocation is not saved yet, and those for which Stands fails.
func (a *Approvals) List() []api.Approval {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tidy()
	list := []api.Approval{}
	for _, one := range a.list {
		list = append(list, one.Approval)
	}
	return list
}

// Revoke ends the approval with this id, if may returns true for its owner, and returns it.
// Calls that it covers then need approval again. The error is ErrNoApproval, or that of
// ApprovalOptions.Save: the approval is then ended in this process, but not for the next
// one until Flush or another Revoke succeeds.
func (a *Approvals) Revoke(id string, may func(owner string) bool) (api.Approval, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tidy()
	at := slices.IndexFunc(a.list, func(one *KeptApproval) bool { return one.ID == id && may(one.Owner) })
	if at < 0 {
		return api.Approval{}, ErrNoApproval
	}
	one := a.list[at]
	if one.For != api.ForIdentity {
		a.list = slices.Delete(a.list, at, at+1)
		return one.Approval, nil
	}
	one.RevokedAt = a.options.Now().UTC()
	return one.Approval, a.saveRevoked()
}

// Flush retries failed saves, and saves how often approvals were used. Call it periodically
// and at the end. An error means that a revocation is not saved.
func (a *Approvals) Flush() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.unsaved {
		return a.saveRevoked()
	}
	if a.used {
		_ = a.save() // or the next Flush does
	}
	return nil
}

// EndSession ends the approvals for a session that is over.
func (a *Approvals) EndSession(owner, id string) {
	a.end(func(one *KeptApproval) bool {
		return one.For == api.ForSession && one.Owner == owner && one.SessionID == id
	})
}

func (a *Approvals) endTurn(id string) {
	a.end(func(one *KeptApproval) bool { return one.For == api.ForTurn && one.TurnID == id })
}

func (a *Approvals) end(which func(*KeptApproval) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = slices.DeleteFunc(a.list, which)
}

// tidy drops those that are over. a is locked.
func (a *Approvals) tidy() {
	a.list = slices.DeleteFunc(a.list, func(one *KeptApproval) bool {
		over, err := a.over(one)
		return over && err == nil
	})
}

// inForce says whether one is known not to be over yet.
func (a *Approvals) inForce(one *KeptApproval) bool {
	over, err := a.over(one)
	return !over && err == nil
}

// over says whether one has ended; the error is why nobody knows.
func (a *Approvals) over(one *KeptApproval) (bool, error) {
	if !one.ExpiresAt.IsZero() && !a.options.Now().Before(one.ExpiresAt) {
		return true, nil
	}
	if one.For != api.ForIdentity || a.options.Stands == nil {
		return false, nil
	}
	stands, err := a.options.Stands(one.Approval)
	return !stands, err
}

// save saves those for identities that are in force; the revoked go with that. a is locked.
func (a *Approvals) save() error {
	a.tidy()
	var own []KeptApproval
	for _, one := range a.list {
		if one.For == api.ForIdentity && one.RevokedAt.IsZero() {
			own = append(own, *one)
		}
	}
	if err := a.keep(own); err != nil {
		return err
	}
	a.unsaved, a.used = false, false
	return nil
}

// saveRevoked is save where too few may be saved, but none too many. a is locked.
func (a *Approvals) saveRevoked() error {
	if a.save() == nil {
		return nil
	}
	a.unsaved = true
	if err := a.keep(nil); err != nil {
		return err
	}
	_ = a.save() // into the room of what has gone, else by Flush
	return nil
}

// keep has a list saved, in which no revoked one is.
func (a *Approvals) keep(list []KeptApproval) error {
	if a.options.Save != nil {
		if err := a.options.Save(list); err != nil {
			return fmt.Errorf("cannot keep the approvals: %w", err)
		}
	}
	a.list = slices.DeleteFunc(a.list, func(one *KeptApproval) bool { return !one.RevokedAt.IsZero() })
	return nil
}

// hold says whether a call was approved before, and counts it. A call waits for it, so
// only what covers the call is looked at closely.
func (a *Approvals) hold(c approvable) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := slices.IndexFunc(a.list, func(one *KeptApproval) bool { return one.covers(c) && a.inForce(one) })
	if at < 0 {
		return false
	}
	a.list[at].Uses++
	a.list[at].LastUse = a.options.Now().UTC()
	a.used = a.used || a.list[at].For == api.ForIdentity
	return true
}

// mayHold says whether there is one that may be for a call, by what is known of it.
func (a *Approvals) mayHold(c approvable) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.list, func(one *KeptApproval) bool { return one.mayCover(c) && a.inForce(one) })
}

// give keeps a human's answer for more than one call.
func (a *Approvals) give(c approvable, given api.Answer) (*KeptApproval, error) {
	one := &KeptApproval{Key: c.any, Approval: api.Approval{
		ID: rand.Text(), Tool: c.tool, Rule: c.rule, For: cmp.Or(given.For, api.ForTurn), Owner: c.owner, By: given.By, At: a.options.Now().UTC(),
	}}
	switch one.For {
	case api.ForTurn:
		one.TurnID = c.turn
	case api.ForSession:
		one.SessionID, one.ExpiresAt = c.session, one.At.Add(sessionApproval)
	case api.ForIdentity:
		one.ExpiresAt = one.At.Add(identityApproval)
	}
	if given.SameArguments {
		one.Key, one.Arguments = c.same, shownArguments(c.arguments)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tidy()
	if a.full(c.owner) {
		return nil, fmt.Errorf("%d approvals are in force for %s: revoke some (toolhost approvals), or approve this call alone", ownApprovals, cmp.Or(c.owner, "it"))
	}
	switch over, err := a.over(one); {
	case err != nil:
		return nil, fmt.Errorf("cannot approve for %s: %w", c.owner, err)
	case over: // its token is gone, or the clock was set back since that was made
		return nil, fmt.Errorf("an approval for %s would be over at once: its token is gone, or the host's clock was set back; approve this call alone", c.owner)
	}
	a.list = append(a.list, one)
	if one.For != api.ForIdentity {
		return one, nil
	}
	if err := a.save(); err != nil {
		a.list = slices.DeleteFunc(a.list, func(other *KeptApproval) bool { return other == one })
		return nil, err
	}
	return one, nil
}

// full says that no more can be kept for an owner. a is locked.
func (a *Approvals) full(owner string) bool {
	own := 0
	for _, one := range a.list {
		if one.Owner == owner {
			own++
		}
	}
	return own >= ownApprovals || len(a.list) >= maxApprovals
}

// shownArguments are what people see of arguments: large ones are told by their size.
func shownArguments(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("{}")
	}
	if len(raw) <= maxShownArguments && json.Valid(raw) {
		return raw
	}
	shown, _ := json.Marshal(fmt.Sprintf("%d bytes of arguments", len(raw)))
	return shown
}

// lastsFor are what an answer can be for beside one call.
func (t *Turn) lastsFor(covered *approvable) []string {
	if covered == nil {
		return nil
	}
	list := []string{api.ForTurn}
	if t.lasting != "" {
		list = append(list, api.ForSession)
	}
	if t.info.Owner != "" {
		list = append(list, api.ForIdentity)
	}
	return list
}

// checkAlways says why an answer cannot be for more than one call.
func (t *Turn) checkAlways(p *pending, a api.Answer) error {
	switch {
	case !a.Always && (a.For != "" || a.SameArguments):
		return errors.New("for and sameArguments go with always: true")
	case !a.Always:
		return nil
	case !a.Approve:
		return errors.New("only a yes can be for more than one call")
	case a.For == "":
		return nil
	case p.covered == nil:
		return errors.New("this question is answered for one call alone: leave out for")
	case !slices.Contains(p.Always, a.For):
		return fmt.Errorf("for is %q: of this question it must be %s", a.For, strings.Join(p.Always, " or "))
	}
	return nil
}

// approveAlways keeps an answer for more than one call, and gives it to the questions
// of the turn that it covers and that wait now.
func (t *Turn) approveAlways(p *pending, a api.Answer) error {
	a.By = text.Bytes(a.By, maxByBytes)
	given, err := t.m.config.Approvals.give(*p.covered, a)
	if err != nil {
		return err
	}
	t.close(p, api.OutcomeAnswered, a)
	for _, other := range t.pendings {
		if other.covered != nil && given.covers(*other.covered) {
			t.close(other, api.OutcomeAnswered, a)
		}
	}
	return nil
}
