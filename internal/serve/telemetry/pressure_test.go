package telemetry

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestPressure(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"cpu.pressure":    "some avg10=1.50 avg60=0.20 avg300=0.00 total=2500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
		"memory.pressure": "none of it\nsome\nsome avg10=0.00 total=many\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := []stall{{"cpu", "some", 2.5}, {"cpu", "full", 0}}
	if got := readPressure(dir); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, none := range []string{"", "relative", filepath.Join(dir, "nothing")} {
		if got := readPressure(none); got != nil {
			t.Errorf("%q has pressure: %+v", none, got)
		}
	}
}

// Where the kernel does not tell, there is no metric, rather than one of 0.
func TestNoPressureIsAbsent(t *testing.T) {
	dir := t.TempDir()
	told := newTelemetry(t, Config{Load: func() Load { return Load{CgroupDir: dir, JournalBytes: -1} }})
	for name := range samples(t, told) {
		if strings.Contains(name, "group=calls") || strings.Contains(name, "journal_size") {
			t.Errorf("there is %s", name)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "io.pressure"), []byte("some avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := samples(t, told)["toolhost_cgroup_pressure_seconds_total{group=calls,resource=io,severity=some}"]; got != 7e-6 {
		t.Errorf("pressure %v", got)
	}
}
