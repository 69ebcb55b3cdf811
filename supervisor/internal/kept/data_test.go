package kept

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/toolhost/toolhost/supervisor/internal/admission"
	"github.com/toolhost/toolhost/supervisor/internal/filelock"
	"github.com/toolhost/toolhost/supervisor/internal/tasks"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// A call whose process dies long after it gives back the tool's data then, though nothing
// else is left of its line.
func TestALockOutlivesItsLine(t *testing.T) {
	var ts tasks.Tasks
	p, file := NewPool(admission.Limits{}, &ts, Source{}), filepath.Join(t.TempDir(), "lock")
	l, err := p.join("", Key{lock: file}, spec.Keep{})
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := l.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l.Part()
	if left := ts.Wait(time.Minute); len(left) > 0 {
		t.Fatalf("%q goes on", left)
	}
	unlock()
	ctx, giveUp := context.WithCancel(t.Context())
	release, err := filelock.Acquire(ctx, file, false, giveUp)
	if err != nil {
		t.Fatalf("the data is still locked: %v", err)
	}
	release()
}
