package supervisor

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// keepKey is all by which the process that is kept for one call can differ from
// that for another, as data. It holds no pointers.
type keepKey struct {
	binary, path string
	args, env    []string
	dir          string // and which folder that is at present
	policy       string
	limits       spec.Bounds
	adapter      bool
	secrets      []Secret
	lock         string
	idle         time.Duration
	maxCalls     int
	once         bool
}

func (c *Call) keepKey() keepKey {
	r := c.p.Request
	return keepKey{
		binary: c.p.Binary.SHA256, path: c.p.Path, args: r.Tool.Args, env: r.Env, dir: sandbox.PathKey(c.p.Dir),
		policy: c.p.Policy.Key(), limits: c.p.Bounds, adapter: r.Tool.Adapter, secrets: r.Secrets, lock: r.Lock.File,
		idle: r.Keep.Idle, maxCalls: r.Keep.MaxCalls, once: r.Keep.Once,
	}
}

// sum is short, and tells nothing of the secrets.
func (k keepKey) sum() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%#v", k))
	return hex.EncodeToString(sum[:])
}
