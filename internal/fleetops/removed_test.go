package fleetops

import (
	"fmt"
	"sync"
	"testing"
)

// Workers that are removed at the same time are all on record.
func TestRemovalsAtOnce(t *testing.T) {
	r := &removals{dir: t.TempDir()}
	const workers = 20
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			if err := r.add(fmt.Sprint("w", i), "KEY"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if list, err := r.read(); err != nil || len(list) != workers {
		t.Errorf("%v, %v", list, err)
	}
}
