package cgroup

import "testing"

func TestDecidePlace(t *testing.T) {
	cases := []struct {
		name string
		f    placeFacts
		want placement
	}{
		{"true root", placeFacts{own: "/", trueRoot: true, writable: true}, placeRoot},
		{"true root, not ours", placeFacts{own: "/", trueRoot: true, uid: 1000}, placeImpossible},
		{"service with Delegate=yes", placeFacts{own: "/system.slice/toolhost.service", delegated: true, writable: true, systemd: true}, placeOwn},
		{"the same for User=", placeFacts{own: "/system.slice/toolhost.service", delegated: true, writable: true, systemd: true, uid: 1000}, placeOwn},
		{"evacuated before", placeFacts{own: "/system.slice/toolhost.service/toolhost-supervisor-0123456789abcdef", parentDelegated: true, writable: true, systemd: true}, placeParent},
		{"not delegated", placeFacts{own: "/a.slice/toolhost-supervisor-0123456789abcdef", writable: true, systemd: true}, placeAskSystem},
		{"somebody else's supervisor", placeFacts{own: "/supervisor", writable: true}, placeOwnSelf},
		{"container", placeFacts{own: "/", writable: true}, placeOwn},
		{"container, evacuated", placeFacts{own: "/toolhost-supervisor-0123456789abcdef", writable: true}, placeParent},
		{"container, read-only", placeFacts{own: "/"}, placeImpossible},
		{"root's session", placeFacts{own: "/user.slice/user-0.slice/session-1.scope", writable: true, systemd: true}, placeAskSystem},
		{"user's session", placeFacts{own: "/user.slice/user-1000.slice/session-1.scope", systemd: true, uid: 1000}, placeAskUser},
		{"delegated but not writable", placeFacts{own: "/a.service", delegated: true, systemd: true, uid: 1000}, placeAskUser},
		{"other init, root", placeFacts{own: "/openrc.foo", writable: true}, placeOwnSelf},
		{"other init, user", placeFacts{own: "/openrc.foo", uid: 1000}, placeImpossible},
	}
	for _, c := range cases {
		if got := decidePlace(c.f); got != c.want {
			t.Errorf("%s: placement %d, want %d", c.name, got, c.want)
		}
	}
}

func TestIsOwnScope(t *testing.T) {
	for p, want := range map[string]bool{
		"/user.slice/toolhost-1-x.scope": true,
		"/toolhost-1-x.scope":            true,
		"/not-toolhost-1-x.scope":        false,
		"/toolhost-1-x.scope/y":          false,
	} {
		if got := isOwnScope(p, "toolhost-1-x.scope"); got != want {
			t.Errorf("isOwnScope(%s) = %v", p, got)
		}
	}
}
