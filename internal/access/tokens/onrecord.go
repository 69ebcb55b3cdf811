package tokens

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/toolhost/toolhost/internal/access"
	"github.com/toolhost/toolhost/internal/lazy"
	"github.com/toolhost/toolhost/internal/text"
)

// Actions of audit records about tokens begin with ActionPrefix.
const (
	ActionPrefix = "token."
	actionCreate = ActionPrefix + "create"
	actionRevoke = ActionPrefix + "revoke"
	// actionChange and actionGone are what no program of toolhost's does: a file that
	// was edited, or put back from a copy.
	actionChange = ActionPrefix + "change"
	actionGone   = ActionPrefix + "gone"
)

// OnRecord is what the chain of audit records has of tokens. What it lacks is found by
// the tokens themselves, so that nothing done while no daemon runs is left out. The zero
// value is an empty chain.
type OnRecord struct{ known map[string]entry }

// entry is a token as the chain has it.
type entry struct {
	what    string
	expires time.Time
	over    string // the action by which it is over: revoked or gone
}

// Change is one that the chain has not.
type Change struct {
	Who, Action, What string
	// At is when it was done, zero if that is unknown.
	At time.Time
	// Ended is the name of a token that is over by it; empty if it is not.
	Ended string
	// Unrevoked is the id of a token that is on record as revoked, and is not any more.
	Unrevoked string

	id      string
	expires time.Time
}

// Odd says that the change was made by no program of toolhost's.
func (c Change) Odd() bool { return c.Action == actionChange || c.Action == actionGone }

var whatForm = lazy.Regexp(`^\S+ \(([a-z2-7]{10})\)(?:: .*expires (\S+), sha256:[0-9a-f]{16}$)?`)

// Note takes a record of the chain; those about other things are passed over.
func (o *OnRecord) Note(action, what string) {
	parts := whatForm().FindStringSubmatch(what)
	if parts == nil || !strings.HasPrefix(action, ActionPrefix) {
		return
	}
	expires, _ := time.Parse(time.RFC3339, parts[2]) // "never" is zero
	o.note(parts[1], action, what, expires)
}

// NoteChange takes one of Missing's, which is in the chain now.
func (o *OnRecord) NoteChange(c Change) { o.note(c.id, c.Action, c.What, c.expires) }

func (o *OnRecord) note(id, action, what string, expires time.Time) {
	if o.known == nil {
		o.known = map[string]entry{}
	}
	e := o.known[id]
	switch action {
	case actionCreate, actionChange:
		e.what, e.expires, e.over = what, expires, ""
	case actionRevoke, actionGone:
		e.over = action
	}
	o.known[id] = e
}

// Missing are the changes that the tokens show and the chain has not.
func (o *OnRecord) Missing(list []Token, now time.Time) (missing []Change) {
	there := map[string]bool{}
	for _, t := range list {
		there[t.ID] = true
		add := func(who, action, what string, at time.Time) {
			missing = append(missing, Change{Who: who, Action: action, What: what, At: at, id: t.ID, expires: t.Expires})
		}
		e, known := o.known[t.ID]
		unrevoked := e.over == actionRevoke && t.Revoked.IsZero()
		switch {
		case !known:
			add(t.By, actionCreate, t.onRecord(), t.Created)
		case unrevoked, e.over == actionGone, e.described() && e.what != t.onRecord():
			add(unknown, actionChange, t.onRecord(), time.Time{})
			e.over = ""
		}
		if unrevoked {
			missing[len(missing)-1].Unrevoked = t.ID
		}
		if !t.Revoked.IsZero() && e.over == "" {
			add(t.RevokedBy, actionRevoke, t.title(), t.Revoked)
			missing[len(missing)-1].Ended = t.Name
		}
	}
	for id, e := range o.known {
		if !there[id] && e.over == "" && (e.expires.IsZero() || now.Before(e.expires)) { // tidy takes those that are over
			title, _, _ := strings.Cut(e.what, ":")
			name, _, _ := strings.Cut(title, " ")
			missing = append(missing, Change{Who: unknown, Action: actionGone, What: title, Ended: name, id: id})
		}
	}
	return missing
}

// unknown is who has changed the file by other means.
const unknown = "somebody unknown"

// described says that the record has all of the token: those of older daemons have not.
func (e entry) described() bool { return strings.Contains(e.what, "sha256:") }

func (t Token) title() string { return t.Name + " (" + t.ID + ")" }

// maxToolsRunes bounds the patterns in a record; the hash is of all of them.
const maxToolsRunes = 200

// onRecord is the token in a record: what it lets its bearer do, and a hash of all of it.
func (t Token) onRecord() string {
	tools, expires := "all", "never"
	if t.Tools != nil {
		tools = text.Cut(strings.Join(t.Tools, ","), maxToolsRunes)
	}
	if !t.Expires.IsZero() {
		expires = t.Expires.UTC().Format(time.RFC3339)
	}
	t.Revoked, t.RevokedBy = time.Time{}, ""
	raw, _ := json.Marshal(t)
	sum := sha256.Sum256(raw)
	return fmt.Sprintf("%s: %s, tools %s, expires %s, sha256:%x", t.title(), access.NamesOf(t.Roles, ","), tools, expires, sum[:8])
}
