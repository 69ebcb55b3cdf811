package prepare

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
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
)

// Service is the socket at which one call's tool can ask something of its host. The
// folder that it lies in keeps all others of this machine away from it.
type Service struct {
	Listener net.Listener
	path     string // on the host
	seen     string // by the tool
	close    func()
}

// openService makes the call's socket, if it is to have one.
func (n *preparation) openService() error {
	switch {
	case n.Request.Host == nil || n.Work != ForCall:
		return nil
	case n.Request.Keep != nil:
		return outcome.Refuse(api.StatusStartFailed, api.ReasonKeep, errors.New("a kept process serves many calls and cannot begin turns for one: leave out keep, or turns"))
	}
	path := filepath.Join(n.RuntimeDir, "t"+rand.Text()[:12])
	listener, err := net.Listen("unix", path)
	if err == nil {
		err = os.Chmod(path, 0o666) // the call has a user of its own
	}
	if err != nil {
		return outcome.HostFailure(fmt.Errorf("cannot make the socket for the call's turns: %w", text.Cause(err)))
	}
	n.Service = &Service{Listener: listener, path: path, seen: path, close: sync.OnceFunc(func() { _ = listener.Close() })}
	if n.Policy.Confines() {
		n.Service.seen = hiddenSocket
	}
	return nil
}

// Close is the end of all that the tool can ask for. It may be called again.
func (s *Service) Close() {
	if s != nil {
		s.close()
	}
}

func (s *Service) env() []string {
	if s == nil {
		return nil
	}
	return []string{api.TurnsVariable + "=" + s.seen}
}
