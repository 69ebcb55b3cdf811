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
