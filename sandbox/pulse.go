package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

const (
	// pulseAfter is how long a birth may take before its zygote is asked
	// whether it still runs, and how often it is asked then.
	pulseAfter = 250 * time.Millisecond
	// pulsePatience is for one answer. A zygote that gives none twice hangs:
	// twice, so that a machine that was suspended as a whole is not taken for it.
	pulsePatience = 3 * time.Second
	pulseMisses   = 2
)

// pulse is a zygote's sign of life, apart from what it is asked to do: on a
// busy machine a birth may take long.
type pulse struct {
	conn  *net.UnixConn
	asked chan struct{} // at most one value
	// lost is closed when the zygote gives birth to nothing more: it has ended,
	// or hangs and was killed. err says which, and is written before.
	lost chan struct{}
	err  error
}

// errZygoteHung is an errZygoteGone, too.
var errZygoteHung = fmt.Errorf("%w: it was killed after %s without an answer, as where something has stopped it", errZygoteGone, pulseMisses*pulsePatience)

func newPulse(conn *net.UnixConn) pulse {
	return pulse{conn: conn, asked: make(chan struct{}, 1), lost: make(chan struct{})}
}

// ask has watch look whether the zygote lives. It doesn't wait.
func (p *pulse) ask() {
	select {
	case p.asked <- struct{}{}:
	default:
	}
}

// askIfSlow asks if what follows takes long; done ends that.
func (z *zygote) askIfSlow() (done func()) {
	timer := time.AfterFunc(pulseAfter, z.pulse.ask)
	return func() { timer.Stop() }
}

// watch finds out, when it is asked, whether the zygote hangs, and then kills
// it. It ends with the zygote.
func (z *zygote) watch() {
	defer close(z.pulse.lost)
	z.pulse.err = errZygoteGone
	for {
		select {
		case <-z.gone:
			return
		case <-z.pulse.asked:
		}
		if !z.pulse.beats() {
			z.pulse.err = errZygoteHung
			_ = z.child.Kill()
			return
		}
		select {
		case <-z.gone:
		case <-time.After(pulseAfter):
		}
	}
}

// beats is false if the zygote lives and answers nothing.
func (p *pulse) beats() bool {
	buf := make([]byte, 16)
	for range pulseMisses {
		if _, err := p.conn.Write([]byte{1}); err != nil {
			return true // it has ended
		}
		_ = p.conn.SetReadDeadline(time.Now().Add(pulsePatience))
		if _, err := p.conn.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
			return true // also the answer to an earlier one; or it has ended
		}
	}
	return false
}
