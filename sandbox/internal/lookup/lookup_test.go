package lookup

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestSteerable(t *testing.T) {
	for _, c := range []struct {
		folder, link unix.Stat_t
		uid          int
		want         bool
	}{
		{unix.Stat_t{Mode: 0o755}, unix.Stat_t{Uid: 7}, 0, false},
		{unix.Stat_t{Mode: 0o1777}, unix.Stat_t{}, 0, true},
		{unix.Stat_t{Mode: 0o770}, unix.Stat_t{}, 0, true},
		{unix.Stat_t{Mode: 0o700, Uid: 7}, unix.Stat_t{}, 0, true},
		{unix.Stat_t{Mode: 0o1777}, unix.Stat_t{Uid: 8}, 7, true},
		{unix.Stat_t{Mode: 0o777}, unix.Stat_t{Uid: 7}, 7, false},
		{unix.Stat_t{Mode: 0o1777}, unix.Stat_t{Uid: 0}, 7, false},
		{unix.Stat_t{Mode: 0o775, Uid: 7}, unix.Stat_t{Uid: 8}, 7, false},
	} {
		if got := steerable(&c.folder, &c.link, c.uid); got != c.want {
			t.Errorf("folder %o of %d, link of %d, for %d: %v", c.folder.Mode, c.folder.Uid, c.link.Uid, c.uid, got)
		}
	}
}
