package fleetops

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/internal/testenv/certificate"
	"github.com/toolhost/toolhost/internal/tools/config"
)

// What the daemon would not start with is found before, at its place.
func TestKeysThatAFleetDoesNotStartWith(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Now()
	own, one := newKey(t, dir+"/own"), newKey(t, dir+"/one")
	newKey(t, dir+"/open")
	if err := os.Chmod(dir+"/open", 0o644); err != nil {
		t.Fatal(err)
	}
	good, goodKey := certificate.Of127(t, now.Add(-time.Hour), now.Add(time.Hour))
	old, oldKey := certificate.Of127(t, now.Add(-2*time.Hour), now.Add(-time.Hour))
	early, earlyKey := certificate.Of127(t, now.Add(time.Hour), now.Add(2*time.Hour))
	pair := func(cert, key string) string { return "cert: " + cert + ", certKey: " + key + ", key: own" }
	wrong := one[:55] + map[bool]string{true: "B", false: "A"}[one[55] == 'A']
	for _, x := range []struct{ settings, path, want string }{
		{pair(good, goodKey) + ", workers: {w1: " + one + "}", "", ""},
		{pair(good, oldKey), "fleet.cert", "cannot use the fleet's certificate"},
		{pair(old, oldKey), "fleet.cert", "was valid until"},
		{pair(early, earlyKey), "fleet.cert", "is valid from"},
		{"key: own, workers: {w1: " + own + "}", "fleet.workers.w1", "the same key as the caller"},
		{"workers: {w1: " + one + ", w2: " + one + "}", "fleet.workers.w2", "the same key as worker w1"},
		{"workers: {w1: " + wrong + "}", "fleet.workers.w1", "is not the public nkey"},
		{"key: open", "fleet.key", "others may use it: chmod 600 it"},
		{"key: nosuch", "fleet.key", "no such file"},
	} {
		path := filepath.Join(dir, "toolhost.yaml")
		if err := os.WriteFile(path, []byte("fleet: {listen: '127.0.0.1:7420', "+x.settings+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		loaded, err := config.Load(config.Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		err = CheckKeys(loaded)
		if x.want == "" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		problems, _ := err.(config.Problems)
		if len(problems) != 1 || problems[0].Path != x.path || problems[0].Line != 1 || !strings.Contains(problems[0].Message, x.want) {
			t.Errorf("%s: %v, want %q at %s", x.settings, err, x.want, x.path)
		}
	}
}

// newKey makes a key, and returns the public one.
func newKey(t *testing.T, path string) string {
	t.Helper()
	if err := MakeKey(path); err != nil {
		t.Fatal(err)
	}
	key, err := publicKey(path, "")
	if err != nil {
		t.Fatal(err)
	}
	return key
}
