package access

import (
	"slices"
	"strconv"
)

// Book finds identities. Its zero value knows nobody.
type Book struct {
	// Admins are users of the machine who may do everything: root, and the daemon's
	// own.
	Admins []uint32
	// Guests are users who may connect; AnyUser makes everybody one. They have
	// GuestRoles, and Call if that is nil, unless a profile says something else.
	Guests     []uint32
	AnyUser    bool
	GuestRoles []Role
	// Profiles are in the order of the configuration.
	Profiles []Profile
}

// OfUser is who a user of the machine is; false if they may not connect. The first
// profile with the uid counts, else the first with one of the groups.
func (b Book) OfUser(uid uint32, groups []uint32) (Identity, bool) {
	i := Identity{Name: "uid " + strconv.FormatUint(uint64(uid), 10), origin: &origin{uid: uid, groups: groups}}
	profile, named := b.profile(uid, groups)
	i.Profile = profile
	switch {
	case slices.Contains(b.Admins, uid): // nobody can lock them out, who can change the configuration
		i.Roles, i.Profile = []Role{Admin}, Profile{}
	case named:
		i.Roles = profile.Roles
	case b.AnyUser || slices.Contains(b.Guests, uid):
		if i.Roles = b.GuestRoles; i.Roles == nil {
			i.Roles = []Role{Call}
		}
	default:
		return Identity{}, false
	}
	return i, true
}

func (b Book) profile(uid uint32, groups []uint32) (Profile, bool) {
	at := slices.IndexFunc(b.Profiles, func(p Profile) bool { return slices.Contains(p.UIDs, uid) })
	if at < 0 {
		at = slices.IndexFunc(b.Profiles, func(p Profile) bool { return p.Group != nil && slices.Contains(groups, *p.Group) })
	}
	if at < 0 {
		return Profile{}, false
	}
	return b.Profiles[at], true
}

// OfToken is who bears a token.
func (b Book) OfToken(name string, roles []Role, tools []string) Identity {
	i := Identity{Name: "token " + name, Roles: roles, Tools: tools, origin: &origin{token: name}}
	if at := slices.IndexFunc(b.Profiles, func(p Profile) bool { return p.Name == name }); at >= 0 {
		i.Profile = b.Profiles[at]
	}
	return i
}

// Current is an identity that was found earlier, by another book perhaps, as it is by this
// one. A user who may not connect any more may use nothing. What no book has found stays as
// it is.
func (b Book) Current(i Identity) Identity {
	switch {
	case i.origin == nil:
		return i
	case i.origin.token != "":
		return b.OfToken(i.origin.token, i.Roles, i.Tools)
	}
	now, ok := b.OfUser(i.origin.uid, i.origin.groups)
	if !ok {
		return Identity{Name: i.Name, Tools: []string{}, origin: i.origin}
	}
	return now
}
