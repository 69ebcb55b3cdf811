package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Whatever is not as it should be has a remedy, and says it once.
func TestDoctorHasRemedies(t *testing.T) {
	t.Parallel()
	for release, want := range map[string]string{"5.13.0": levelFail, "5.14.0-rc1": levelOK, "6.1.0": levelOK, "": levelWarn, "unknown": levelWarn} {
		if got := checkRelease(release); got.Level != want || (got.Remedy == "") != (want == levelOK) {
			t.Errorf("%q: %+v, want %s", release, got, want)
		}
	}
	got := failure("supervisor", errors.New("cannot use cgroups: no; run as root; or name a parent"))
	if want := (finding{"supervisor", levelFail, "cannot use cgroups: no", "run as root; or name a parent"}); got != want {
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
		if (got.Level == levelOK) != (want == "") || !strings.Contains(got.Detail, want) || (got.Remedy == "") != (want == "") {
			t.Errorf("%s: %+v, want %q", path, got, want)
		}
	}
}

// Doctor looks where the configuration has calls made.
func TestDoctorGoesByTheConfiguration(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "toolhost.yaml")
	if err := os.WriteFile(path, []byte("cgroupParent: /no/such\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(testBinary(t), asToolhost, "doctor", "--config", path)
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), `parent cgroup "/no/such"`) {
		t.Errorf("%v: %s", err, out)
	}
}

// A configuration with mistakes is told, and the machine is looked at without it.
func TestDoctorTellsMistakesOfTheConfiguration(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "toolhost.yaml")
	if err := os.WriteFile(path, []byte("cgroupParent: /no/such\nnosuch: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(testBinary(t), asToolhost, "doctor")
	cmd.Env = append(os.Environ(), "TOOLHOST_CONFIG="+path)
	out, _ := cmd.Output() // the rest is this machine's
	want := "warn  configuration  not used: " + path + ":2"
	if !strings.HasPrefix(string(out), want) || !strings.Contains(string(out), "toolhost config validate") || strings.Contains(string(out), "/no/such") {
		t.Errorf("it says\n%s\nwant first %q", out, want)
	}
}
