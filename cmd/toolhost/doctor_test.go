package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

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
