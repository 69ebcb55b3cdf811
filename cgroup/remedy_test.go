package cgroup

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A remedy is a command to type, and no other than the one for this user on this host.
func TestRemedies(t *testing.T) {
	for name, c := range map[string]struct {
		at   surroundings
		want []string
		not  string
	}{
		"a user without a session": {surroundings{systemd: true, uid: 1000}, []string{
			"loginctl enable-linger 1000", "export XDG_RUNTIME_DIR=/run/user/1000", "systemd-run --user --scope -p Delegate=yes toolhost", "systemctl --user start toolhost", "--cgroup-parent",
		}, "sudo"},
		"a user":                   {surroundings{systemd: true, uid: 1000, runtime: "/run/user/1000"}, []string{"systemd-run --user --scope -p Delegate=yes toolhost"}, "enable-linger"},
		"root":                     {surroundings{systemd: true}, []string{"systemd-run --scope -p Delegate=yes toolhost", "systemctl start toolhost"}, "--user"},
		"root without systemd":     {surroundings{}, []string{"--cgroup-parent", "cgroupParent in toolhost.yaml"}, "systemctl"},
		"a user without systemd":   {surroundings{uid: 1000}, []string{"sudo toolhost", "--cgroup-parent"}, "systemctl"},
		"another user's elsewhere": {surroundings{uid: 1001, runtime: "/run/user/1001"}, []string{"sudo toolhost"}, "systemctl"},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.at.place()
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("%q does not say %q", got, want)
				}
			}
			if strings.Contains(got, c.not) || strings.ContainsAny(got, ";\n") {
				t.Errorf("%q says %q, or is more than one remedy's line", got, c.not)
			}
		})
	}
	for want, at := range map[string]surroundings{
		"systemctl edit user@.service":        {systemd: true, uid: 1000},
		"systemd-run --scope -p Delegate=yes": {systemd: true},
		"cgroup.subtree_control":              {uid: 1000},
	} {
		if got := at.controller("cpu"); !strings.Contains(got, want) || !strings.Contains(got, "cgroup_enable=cpu") || strings.Contains(got, ";") {
			t.Errorf("%+v: %q", at, got)
		}
	}
}

// A cgroup that may have no more below it is said to be what is in the way.
func TestRemedyOfAFullCgroup(t *testing.T) {
	r := openRoot(t, Options{})
	if err := r.v2.tools.write("cgroup.max.descendants", "0"); err != nil {
		t.Fatal(err)
	}
	const want = "; raise cgroup.max.descendants and cgroup.max.depth of the cgroups above, one of which is reached"
	if _, err := r.NewGroup("one", Limits{}); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want a remedy", err)
	}
	if err := unavailableV2("/a", unix.EAGAIN); !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want a remedy", err)
	}
}

// A controller of v1 is not to be sought in cgroup2, only since it is mounted nowhere.
func TestUnmountedController(t *testing.T) {
	own := membership{v1: map[string]string{"memory": "/", "blkio": "/"}, v2: "/"}
	mounts := parseMountinfo("30 29 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n")
	for controller, want := range map[string]bool{"memory": false, "blkio": true, "cpu": false} {
		if got := unmounted(controller, mounts, own); got != want {
			t.Errorf("%s: %t, want %t", controller, got, want)
		}
	}
}
