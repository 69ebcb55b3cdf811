package access

import (
	"path"
	"slices"
)

// Identity is somebody who has authenticated. The zero value may do nothing.
type Identity struct {
	// Name is on record as the owner of turns, and who has answered: "uid 1000",
	// "token ci".
	Name  string
	Roles []Role
	// Profile is what the configuration has for this identity; its name is empty
	// where it has nothing.
	Profile Profile
	// Tools are the patterns of a token's own; the profile's hold beside them. nil is
	// all tools.
	Tools []string
	// origin is what a Book has found the identity by; nil for others.
	origin *origin
}

// origin is a token's name, or else a user.
type origin struct {
	token  string
	uid    uint32
	groups []uint32
}

// Profile is an entry of the configuration.
type Profile struct {
	Name string
	// UIDs are users of the machine, Group the members of a group: those that the
	// profile is for. It is for the token of its name, too.
	UIDs  []uint32
	Group *uint32
	// Roles are those of the users; a token has its own.
	Roles []Role
	// Tools are patterns of names (path.Match); nil is all tools; an empty list matches no tool.
	Tools []string
	// Ask and Deny are patterns of tools that need a human's yes, or cannot be
	// called. They never loosen the tools' own mode.
	Ask, Deny []string
	Quota     Quota
}

// Quota bounds what an identity has at once. Zero fields are unbounded, other than by
// what is there for all.
type Quota struct {
	// Turns are active ones. Running calls have a slot, Waiting ones wait for it. Streams
	// of events are those that are open.
	Turns, Running, Waiting, Streams int
	// BodyBytes are of request bodies in flight, RecordBytes what its turns hold of the
	// journal.
	BodyBytes, RecordBytes int64
	// MemoryBytes and CPUPercent are of the processes of its calls together.
	MemoryBytes, CPUPercent int64
}

// Has says whether the identity has one of the roles that are needed.
func (i Identity) Has(need Need) bool {
	return len(need) > 0 && (i.IsAdmin() || slices.ContainsFunc(i.Roles, func(r Role) bool { return slices.Contains(need, r) }))
}

// IsAdmin says whether it may do everything.
func (i Identity) IsAdmin() bool { return slices.Contains(i.Roles, Admin) }

// Sees says whether it may know of a turn, by the turn's owner.
func (i Identity) Sees(owner string) bool {
	return i.Has(Need{Watch}) || i.Drives(owner)
}

// Drives says whether it may do something with a turn: make calls, abort, end it.
func (i Identity) Drives(owner string) bool {
	return i.IsAdmin() || i.Has(ToCall) && i.Owns(owner)
}

// Owns says whether the turn is its own.
func (i Identity) Owns(owner string) bool { return owner != "" && owner == i.Name }

// SeesQuestions says whether it may know of the questions of a turn.
func (i Identity) SeesQuestions(owner string) bool { return i.Has(ToAnswer) || i.Sees(owner) }

// Answers says whether it may answer for a turn's calls: nobody answers for their own,
// but for administrators.
func (i Identity) Answers(owner string) bool {
	return i.IsAdmin() || i.Has(ToAnswer) && !i.Owns(owner)
}

// Revokes says whether it may take back what was approved for somebody's calls.
func (i Identity) Revokes(owner string) bool { return i.Has(ToAnswer) || i.Drives(owner) }

// MayUse says whether it may know of a tool and call it: the one rule, for lists and
// calls alike.
func (i Identity) MayUse(tool string) bool {
	return permits(i.Tools, tool) && permits(i.Profile.Tools, tool)
}

// Modes of tools that are stricter than allow.
const (
	modeAsk  = "ask"
	modeDeny = "deny"
)

// Mode is a tool's for the identity: its own, or a stricter one.
func (i Identity) Mode(tool, mode string) string {
	switch {
	case mode == modeDeny || Matches(i.Profile.Deny, tool):
		return modeDeny
	case Matches(i.Profile.Ask, tool):
		return modeAsk
	}
	return mode
}

// UsesAll says whether no tool is kept from it.
func (i Identity) UsesAll() bool { return i.Tools == nil && i.Profile.Tools == nil }

func permits(patterns []string, tool string) bool { return patterns == nil || Matches(patterns, tool) }

// Matches says whether one of the patterns is a tool's.
func Matches(patterns []string, tool string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, tool)
		return err == nil && ok
	})
}

// CheckPattern says what is wrong with a pattern of tools; empty if nothing is.
func CheckPattern(pattern string) string {
	if _, err := path.Match(pattern, ""); err != nil || pattern == "" || len(pattern) > 128 {
		return "is not a pattern of tools: write a name, in which * is any text and ? any character"
	}
	return ""
}
