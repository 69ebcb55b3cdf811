package signals

import (
	"os"
	"os/signal"
	"slices"
	"syscall"
	"testing"
)

func TestEverySignalHasOneName(t *testing.T) {
	seen := map[string]syscall.Signal{}
	for s := syscall.Signal(1); s <= 64; s++ {
		name := Name(s)
		if other, taken := seen[name]; taken {
			t.Errorf("signals %d and %d are both %q", other, s, name)
		}
		if seen[name] = s; Number(name) != s {
			t.Errorf("Number(%q) = %d, want %d", name, Number(name), s)
		}
	}
	if seen["SIGTERM"] != syscall.SIGTERM || seen["signal 34"] != 34 {
		t.Errorf("names are %v", seen)
	}
}

func TestNumberOfNoName(t *testing.T) {
	for _, name := range []string{"", "TERM", "SIGNONE", "signal", "signal 0", "signal 65", "signal -1", "signal x"} {
		if n := Number(name); n != 0 {
			t.Errorf("Number(%q) = %d, want 0", name, n)
		}
	}
}

func TestNotIgnored(t *testing.T) {
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	if got := NotIgnored(syscall.SIGHUP, syscall.SIGTERM); !slices.Equal(got, []os.Signal{syscall.SIGTERM}) {
		t.Errorf("caught are %v", got)
	}
}
