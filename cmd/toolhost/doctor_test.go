package main

import (
	"errors"
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
