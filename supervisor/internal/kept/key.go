package kept

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor/internal/prepare"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// Key is all by which the process that is kept for one call can differ from
// that for another, as data. It holds no pointers.
type Key struct {
	binary, path string
	args, env    []string
	dir          string // and which folder that is at present
	policy       string
	limits       spec.Bounds
	adapter      bool
	secrets      []spec.Secret
	lock         string
	idle         time.Duration
	maxCalls     int
	once         bool
	share        spec.Share // whose cgroup it is in
	lease        string     // what it ends with
}

// KeyOf is the key of a call that wants a kept process, or one that was started
// before it.
func KeyOf(p *prepare.Prepared) Key {
	r, keep := p.Request, cmp.Or(p.Request.Keep, &spec.Keep{Once: true})
	return Key{
		binary: p.Binary.SHA256, path: p.Path, args: r.Tool.Args, env: r.Env, dir: sandbox.PathKey(p.Dir),
		policy: p.Policy.Key(), limits: p.Bounds, adapter: r.Tool.Adapter, secrets: r.Secrets, lock: r.Lock.File,
		idle: keep.Idle, maxCalls: keep.MaxCalls, once: keep.Once,
		share: shareOf(r.Share, r.Keep != nil), lease: r.Lease.Name(),
	}
}

// shareOf is empty where a process may serve the calls of several: where nothing bounds
// them together, and they are not to be apart from others at the process. One that is not
// kept serves a single call.
func shareOf(s spec.Share, kept bool) spec.Share {
	s.Apart = s.Apart && kept
	return spec.Share{Key: s.Process(), MemoryBytes: s.MemoryBytes, CPUPercent: s.CPUPercent}
}

// sum is short, and tells nothing of the secrets.
func (k Key) sum() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%#v", k))
	return hex.EncodeToString(sum[:])
}
