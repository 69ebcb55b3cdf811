package doctor

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http/httpproxy"

	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

func TestDoctorOfProxies(t *testing.T) {
	for value, want := range map[string]string{
		"":                                      "",
		"http://proxy.example:3128":             "ok: granted names are reached by HTTPS_PROXY=http://proxy.example:3128",
		"proxy.example:3128":                    "ok: granted names are reached by HTTPS_PROXY=http://proxy.example:3128",
		"http://user:secret@proxy.example:3128": "ok: granted names are reached by HTTPS_PROXY=http://user:xxxxx@proxy.example:3128",
		"https://proxy.example:3128":            "warn: HTTPS_PROXY is not an address that begins with http://",
		"socks5://proxy.example:1080":           "warn: HTTPS_PROXY is not an address that begins with http://",
		"http://[::1":                           "warn: HTTPS_PROXY is not an address that begins with http://",
		"http://user:p%ss@proxy.example:3128":   "warn: HTTPS_PROXY cannot be read as an address, and is not used",
		"http://proxy.example:3128\r":           "warn: HTTPS_PROXY cannot be read as an address, and is not used",
	} {
		var said []string
		for _, f := range checkProxy(&httpproxy.Config{HTTPSProxy: value}) {
			said = append(said, f.Level+": "+f.Detail)
			if f.Level != LevelOK && f.Remedy == "" {
				t.Errorf("%s: no remedy", value)
			}
		}
		if got := strings.Join(said, "; "); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
}

// trying makes calls of this program, whose TestMain does nothing then.
var trying = Program{Path: os.Executable}

// doctorHost is a host as doctor has it, but for the ceiling.
func doctorHost(t *testing.T, ceiling supervisor.Ceiling) *supervisor.Supervisor {
	t.Helper()
	config := supervisor.Config{RuntimeDir: t.TempDir(), Ceiling: ceiling}
	host, err := supervisor.New(t.Context(), config)
	if _, ok := errors.AsType[*cgroup.UnavailableError](err); ok {
		config.NoCgroup = true
		host, err = supervisor.New(t.Context(), config)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	})
	return host
}

// Where calls can have grants, one has been made with them; the relay's user is that of the
// features.
func TestDoctorMakesACallWithGrants(t *testing.T) {
	t.Parallel()
	host := doctorHost(t, supervisor.Ceiling{})
	features := host.Host().Features
	if i := slices.IndexFunc(features, func(f sandbox.Finding) bool { return f.State != sandbox.Yes && !f.Optional() }); i >= 0 {
		t.Skip("calls are refused here without " + features[i].Feature)
	}
	for what, test := range map[string]struct {
		features      []sandbox.Finding
		level, detail string
	}{
		"a user of its own":      {[]sandbox.Finding{{Feature: sandbox.FeatureOwnUID, State: sandbox.Yes}}, LevelOK, "the relay has a user of its own"},
		"the user of toolhost":   {[]sandbox.Finding{{Feature: sandbox.FeatureOwnUID, State: sandbox.No}}, LevelWarn, "the relay has your user id"},
		"nothing is known of it": {nil, LevelOK, "the relay has a user of its own"},
	} {
		found := trying.checkNetwork(host, test.features)
		if len(found) == 0 || found[0].Level != test.level || !strings.HasSuffix(found[0].Detail, test.detail) || (found[0].Remedy == "") != (test.level == LevelOK) {
			t.Errorf("%s: %+v", what, found)
		}
	}
}

// Where calls with grants are refused, doctor says why, with a remedy, and nothing of what
// such calls would be reached by.
func TestDoctorWhereGrantsAreRefused(t *testing.T) {
	t.Parallel()
	host := doctorHost(t, supervisor.Ceiling{Network: sandbox.NetworkNone, Source: "toolhost.yaml:3"})
	found := trying.checkNetwork(host, host.Host().Features)
	if len(found) != 1 || found[0].Level != LevelWarn || found[0].Remedy == "" {
		t.Fatalf("%+v", found)
	}
	for _, part := range []string{"calls with network grants are refused: ", "limits.network: none (toolhost.yaml:3)"} {
		if !strings.Contains(found[0].Detail, part) {
			t.Errorf("no %q in %q", part, found[0].Detail)
		}
	}
}
