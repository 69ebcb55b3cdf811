package cgroup

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMemoryLimitIsTheLeastAbove(t *testing.T) {
	for _, test := range []struct {
		name  string
		mount mount
		own   membership
		files map[string]string
		want  int64
		ok    bool
	}{
		{"v2, of the parent", mount{root: "/", fstype: "cgroup2"}, membership{v2: "/a/b"}, map[string]string{"a/memory.max": "1000\n", "a/b/memory.max": "max\n"}, 1000, true},
		{"v2, its own", mount{root: "/", fstype: "cgroup2"}, membership{v2: "/a/b"}, map[string]string{"a/memory.max": "1000\n", "a/b/memory.max": "10\n"}, 10, true},
		{"v2, without a limit", mount{root: "/", fstype: "cgroup2"}, membership{v2: "/a"}, map[string]string{"a/memory.max": "max\n"}, 0, false},
		{"v1", mount{root: "/", fstype: "cgroup", options: []string{"memory"}}, membership{v1: map[string]string{"memory": "/a"}}, map[string]string{"a/" + fileMemoryV1: "4096\n", fileMemoryV1: "9223372036854771712\n"}, 4096, true},
		{"v1, without a limit", mount{root: "/", fstype: "cgroup", options: []string{"memory"}}, membership{v1: map[string]string{"memory": "/"}}, map[string]string{fileMemoryV1: "9223372036854771712\n"}, 0, false},
		{"a mount that does not show it", mount{root: "/other", fstype: "cgroup2"}, membership{v2: "/a"}, map[string]string{"a/memory.max": "10\n"}, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.mount.point = t.TempDir()
			for name, text := range test.files {
				file := filepath.Join(test.mount.point, name)
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if limit, ok := memoryLimit([]mount{test.mount}, test.own); ok != test.ok || ok && limit != test.want {
				t.Errorf("%d, %t; want %d, %t", limit, ok, test.want, test.ok)
			}
		})
	}
}

func TestFolder(t *testing.T) {
	const v2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"
	const hybrid = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	const part = "30 23 0:26 /a.slice /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	for _, c := range []struct{ membership, mounts, want string }{
		{"0::/system.slice/toolhost.service/supervisor\n", v2, "/sys/fs/cgroup/system.slice/toolhost.service/supervisor"},
		{"4:memory:/x\n0::/\n", hybrid, "/sys/fs/cgroup/unified"},
		{"0::/a.slice/b\n", part, "/sys/fs/cgroup/b"},
		{"0::/a.slices/b\n", part, ""},
		{"0::/../b\n", v2, ""},
		{"4:memory:/x\n", v2, ""},
		{"0::/a\n", "nonsense\n", ""},
	} {
		own, err := parseMembership(c.membership)
		if err != nil {
			t.Fatal(err)
		}
		if got := folder(parseMountinfo(c.mounts), own); got != c.want {
			t.Errorf("%q gives %q, want %q", c.membership, got, c.want)
		}
	}
}
