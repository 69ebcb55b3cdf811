package supervisor

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/text"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
)

// service is the socket at which one call's tool can ask something of its host. The
// folder that it lies in keeps all others of this machine away from it.
type service struct {
	listener net.Listener
	path     string // on the host
	seen     string // by the tool
	close    func() // may be called again, and on a nil service not at all
}

// openService makes the call's socket, if it is to have one.
func (c *Call) openService(policy sandbox.Resolved) error {
	switch {
	case c.request.Host == nil || c.describes || c.explains:
		return nil
	case c.request.Keep != nil:
		return outcome.Refuse(api.StatusStartFailed, api.ReasonKeep, errors.New("a kept process serves many calls and cannot begin turns for one: leave out keep, or turns"))
	}
	path := filepath.Join(c.s.runtime.path, "t"+rand.Text()[:12])
	listener, err := net.Listen("unix", path)
	if err == nil {
		err = os.Chmod(path, 0o666) // the call has a user of its own
	}
	if err != nil {
		return outcome.HostFailure(fmt.Errorf("cannot make the socket for the call's turns: %w", text.Cause(err)))
	}
	c.service = &service{listener: listener, path: path, seen: path, close: sync.OnceFunc(func() { _ = listener.Close() })}
	if policy.Confines() {
		c.service.seen = hiddenSocket
	}
	return nil
}

// serve serves the call until close.
func (c *Call) serve() {
	if s := c.service; s != nil {
		c.s.tasks.Run("serve the tool", func() { c.request.Host(s.listener) })
	}
}

// endService is the end of all that the tool can ask for.
func (c *Call) endService() {
	if c.service != nil {
		c.service.close()
	}
}

func (s *service) env() []string {
	if s == nil {
		return nil
	}
	return []string{api.TurnsVariable + "=" + s.seen}
}
