package api_test

import (
	"slices"
	"testing"

	"github.com/toolhost/toolhost/api"
)

func TestStatusesAreSorted(t *testing.T) {
	all := api.Statuses()
	if len(all) != 20 || !slices.IsSorted(all) || len(slices.Compact(slices.Clone(all))) != len(all) {
		t.Errorf("%d statuses: %q", len(all), all)
	}
	for _, transient := range []api.Status{api.StatusRunning, api.StatusOpen} {
		if slices.Contains(all, transient) {
			t.Errorf("%q is listed as an outcome", transient)
		}
	}
}
