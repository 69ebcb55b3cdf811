package state

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/toolhost/toolhost/internal/journal"
)

// tendAfter is how long nobody has had a journal that Tend takes up.
const tendAfter = 24 * time.Hour

// Tend prunes a journal below dir that no command has had for a day, if there is one: a
// journal is pruned by its owner, and after a time with many commands at once some have none
// for good. It is to be called once for each Claim.
func Tend(dir string, o journal.Options) ([]Found, error) {
	pool := filepath.Join(dir, commandsDir)
	dirs, err := slots(pool)
	if err != nil {
		return nil, err
	}
	held, err := heldBytes(pool)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	for _, one := range dirs {
		info, err := os.Stat(one)
		if err != nil {
			continue
		}
		if age := now.Sub(info.ModTime()); 0 <= age && age < tendAfter {
			continue
		}
		_ = os.Chtimes(one, now, now)
		own := o
		own.Retention = shareOf(held, one, 1, o.Retention)
		_, found, err := pruneOne(one, own)
		if errors.Is(err, journal.ErrOwned) {
			continue
		}
		return found, err
	}
	return nil, nil
}
