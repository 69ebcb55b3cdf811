package cgroup

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestLimitForNoDevice(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		need(t, "cgroup controller io", slices.Contains(r.Controllers(), ctrlIO), inVM())
		g, err := r.NewGroup("io", Limits{IOMax: []IOMax{{Major: 4095, Minor: 99, ReadBytes: 1 << 20}}})
		if err == nil {
			destroy(t, g)
			t.Fatal("a limit of a device that does not exist was set")
		}
		for _, part := range []string{"device 4095:99", "no such device", "/proc/partitions"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q is not in %q", part, err)
			}
		}
		if !errors.Is(err, unix.ENODEV) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %q", err)
		}
		if r.v2.tools.exists(leafPrefix + "io") {
			t.Error("its group is left")
		}
		t.Log(err)
	})
}
