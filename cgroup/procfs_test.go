package cgroup

import (
	"reflect"
	"strings"
	"testing"

	"github.com/containerd/cgroups/v3"
	"golang.org/x/sys/unix"
)

const hybridMounts = `23 1 0:23 / /sys rw - sysfs sysfs rw
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 /docker/abc /sys/fs/cgroup/memory rw,relatime shared:9 master:3 - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate,pids_localevents
42 31 0:39 / /odd\040place\134x rw - cgroup2 none rw
43 31 0:40 / /bad rw
44 31 x:y / /bad rw - cgroup cgroup rw,pids
`

func TestParseMountinfo(t *testing.T) {
	want := []mount{
		{"/", "/sys/fs/cgroup/cpu,cpuacct", "cgroup", unix.Mkdev(0, 29), []string{"rw", "cpu", "cpuacct"}},
		{"/docker/abc", "/sys/fs/cgroup/memory", "cgroup", unix.Mkdev(0, 32), []string{"rw", "memory"}},
		{"/", "/sys/fs/cgroup/unified", "cgroup2", unix.Mkdev(0, 38), []string{"rw", "nsdelegate", "pids_localevents"}},
		{"/", `/odd place\x`, "cgroup2", unix.Mkdev(0, 39), []string{"rw"}},
	}
	got := parseMountinfo(hybridMounts)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("parseMountinfo:\n%+v\nwant\n%+v", got, want)
	}
	if u := (&unified{mounts: got}); !u.hasOption("pids_localevents") || u.hasOption("memory") {
		t.Error("hasOption is wrong")
	}
	if !got[0].isV1("cpu") || !got[0].isV1("cpuacct") || got[0].isV1("memory") || got[2].isV1("nsdelegate") {
		t.Error("isV1 is wrong")
	}
}

func TestRelative(t *testing.T) {
	cases := []struct {
		root, path, want string
		shown            bool
	}{
		{"/", "/", "/", true},
		{"/", "/a/b", "/a/b", true},
		{"/docker/abc", "/docker/abc", "/", true},
		{"/docker/abc", "/docker/abc/c-1", "/c-1", true},
		{"/docker/abc", "/docker/abcd", "", false},
		{"/docker/abc", "/", "", false},
		{"/..", "/", "", false},       // a mount from above our namespace
		{"/../../x", "/", "", false},  // the same
		{"/", "/../other", "", false}, // we are outside of our namespace's root
	}
	for _, c := range cases {
		got, shown := mount{root: c.root}.relative(c.path)
		if got != c.want || shown != c.shown {
			t.Errorf("relative(%s, %s) = %q, %v", c.root, c.path, got, shown)
		}
	}
}

func TestParseMembership(t *testing.T) {
	m, err := parseMembership("12:cpu,cpuacct:/a\n4:memory:/b:c\n1:name=systemd:/d\n0::/e\n")
	if err != nil || m.v2 != "/e" || m.v1["cpu"] != "/a" || m.v1["memory"] != "/b:c" || m.v1["blkio"] != "" {
		t.Errorf("parseMembership = %+v, %v", m, err)
	}
	if m, err := parseMembership("4:memory:/b\n"); err != nil || m.v2 != "" {
		t.Errorf("without cgroup2: %+v, %v", m, err)
	}
	if _, err := parseMembership("rubbish\n"); err == nil {
		t.Error("rubbish was accepted")
	}
}

// Where containerd's detection applies, ours agrees.
func TestModeAgreesWithContainerd(t *testing.T) {
	got := openRoot(t, Options{}).Mode()
	switch want := cgroups.Mode(); {
	case want == cgroups.Unified && got != ModeV2, want == cgroups.Hybrid && got == ModeV1, want == cgroups.Legacy && got == ModeV2:
		t.Errorf("mode %v, containerd's %v", got, want)
	}
}

func FuzzParseMountinfo(f *testing.F) {
	f.Add(hybridMounts, "/docker/abc/x")
	f.Add("1 1 0:1 /.. / rw - cgroup2 x y\n", "/")
	f.Add(`1 1 0:1 \057 \`+"\n", "")
	f.Fuzz(func(t *testing.T, text, path string) {
		for _, m := range parseMountinfo(text) {
			if m.fstype != "cgroup" && m.fstype != "cgroup2" {
				t.Errorf("mount %+v", m)
			}
			if rel, shown := m.relative(path); shown && strings.HasPrefix(rel, "/..") && !strings.Contains(path, "/..") {
				t.Errorf("relative(%q) of %+v = %q", path, m, rel)
			}
		}
	})
}

func FuzzParseMembership(f *testing.F) {
	f.Add("12:cpu,cpuacct:/a\n0::/e\n")
	f.Add("::\n")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := parseMembership(text)
		if err == nil && !strings.Contains(text, m.v2) {
			t.Errorf("cgroup2 path %q is not in the text", m.v2)
		}
	})
}
