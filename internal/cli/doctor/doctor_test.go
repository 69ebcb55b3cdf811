package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/supervisor"
)

// TestMain is the relay, too, of calls with grants, and the program of trial calls.
func TestMain(m *testing.M) {
	supervisor.RelayMain()
	if len(os.Args) == 2 && os.Args[1] == "version" {
		return
	}
	os.Exit(m.Run())
}

// Whatever is not as it should be has a remedy, and says it once.
func TestDoctorHasRemedies(t *testing.T) {
	t.Parallel()
	for release, want := range map[string]string{"5.13.0": LevelFail, "5.14.0-rc1": LevelOK, "6.1.0": LevelOK, "": LevelWarn, "unknown": LevelWarn} {
		if got := checkRelease(release); got.Level != want || (got.Remedy == "") != (want == LevelOK) {
			t.Errorf("%q: %+v, want %s", release, got, want)
		}
	}
	got := FailOf("supervisor", errors.New("cannot use cgroups: no; run as root; or name a parent"))
	if want := Fail("supervisor", "cannot use cgroups: no", "run as root; or name a parent"); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A folder that is not there yet is made when it is needed.
func TestDoctorLooksAtTheStateFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, open := filepath.Join(dir, "file"), filepath.Join(dir, "open")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Mkdir(open, 0o700), os.Chmod(open, 0o777)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir: "", filepath.Join(dir, "new", "folder"): "", file: "is not a directory",
		open: "others can write to",
	} {
		got := checkStateIn(path)
		if (got.Level == LevelOK) != (want == "") || !strings.Contains(got.Detail, want) || (got.Remedy == "") != (want == "") {
			t.Errorf("%s: %+v, want %q", path, got, want)
		}
	}
}
