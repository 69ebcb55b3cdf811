package fleetops

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/internal/atomicfile"
)

// removedName is the record of removed workers in the state folder: a name and a public key
// a line, the key - where the daemon has none.
const removedName = "fleet.removed"

// removals are the workers that were removed for good. Without a folder they are forgotten
// with the daemon.
type removals struct {
	dir string
	mu  sync.Mutex // of add: several workers may be removed at once
}

type removal struct{ worker, key string }

func (r *removals) path() string { return filepath.Join(r.dir, removedName) }

func (r *removals) read() (list []removal, err error) {
	if r.dir == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(r.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot tell which workers were removed: %w", err)
	}
	for line := range strings.Lines(string(raw)) {
		worker, key, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			return nil, fmt.Errorf("cannot tell which workers were removed: %q in %s is not a name and a key", strings.TrimSpace(line), r.path())
		}
		list = append(list, removal{worker, key})
	}
	return list, nil
}

func (r *removals) add(worker, key string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	list, err := r.read()
	if err != nil || r.dir == "" {
		return err
	}
	entry := removal{worker, cmp.Or(key, "-")}
	if slices.Contains(list, entry) {
		return nil
	}
	var b strings.Builder
	for _, each := range append(list, entry) {
		fmt.Fprintf(&b, "%s %s\n", each.worker, each.key)
	}
	return atomicfile.Write(r.path(), []byte(b.String()), atomicfile.Options{})
}

// apply leaves out of the configured workers those whose keys were removed. names are not
// to be listened to: that of a worker with a new key is again.
func (r *removals) apply(workers map[string]string, logger hclog.Logger) (left map[string]string, names []string, err error) {
	list, err := r.read()
	left = maps.Clone(workers)
	for _, each := range list {
		if key := workers[each.worker]; key != "" && key != each.key {
			continue
		}
		if workers[each.worker] != "" {
			logger.Warn("a worker that was removed is still in fleet.workers: take it out, or give it another key", "worker", each.worker)
		}
		delete(left, each.worker)
		names = append(names, each.worker)
	}
	return left, names, err
}
