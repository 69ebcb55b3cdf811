package worker

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/fleet/internal/portable"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
	"github.com/toolhost/toolhost/supervisor"
)

// prepareTimeout bounds what is looked up for an offer, which takes a Describe at most.
const prepareTimeout = 90 * time.Second

// planned is a call that can be made here.
type planned struct {
	request supervisor.Request
	portable.Caller
	parent, own string // trace contexts: what the call came with, and its own
	// call is the request with all decided.
	call *supervisor.Prepared
}

// giveUp leaves what was made ready for a call that will not start.
func (p *planned) giveUp() {
	if p.call != nil {
		p.call.Close()
	}
	p.call = nil
}

// plan makes the supervisor's request and has all decided about it, without running
// anything of it; what the processes of one that is to begin soon will be in is made
// meanwhile. With an error, call is that of its refusal, if the supervisor has refused it.
func (w *Worker) plan(raw []byte, soon bool) (p planned, why fleetv1.Why, err error) {
	if p.request, p.Caller, err = portable.Read(raw, portable.Machine{CommandTool: w.config.CommandTool, Adapter: w.config.Adapter}); err != nil {
		return p, fleetv1.Why_WHY_CANNOT, err
	}
	p.begin(w.config.Tracer) // its environment has that
	if err := w.config.Ceilings.Check(p.request); err != nil {
		return p, fleetv1.Why_WHY_CEILING, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), prepareTimeout)
	defer cancel()
	prepare := w.host.Prepare
	switch {
	case len(p.request.Secrets) > 0: // it is planned anew at its start
		prepare = w.host.PrepareOffer
	case soon:
		prepare = w.host.PrepareAhead
	}
	if p.call, err = prepare(ctx, p.request); err != nil {
		return p, whyOf(err), err
	}
	over := w.config.Ceilings.CheckTimeout(p.call.Timeout().Timeout)
	switch {
	case p.asksLater():
		if over != nil {
			p.giveUp()
			return p, fleetv1.Why_WHY_CEILING, over
		}
		if err := w.lacksServer(p.request); err != nil {
			p.giveUp()
			return p, whyOf(err), err
		}
		w.boundTimeout(&p)
	case over != nil:
		if why, err := w.capTimeout(ctx, &p); err != nil {
			return p, why, err
		}
	}
	return p, fleetv1.Why_WHY_UNSPECIFIED, nil
}

// asksLater says whether what the tool and its arguments ask for is not known before the
// secrets are here.
func (p *planned) asksLater() bool { return len(p.request.Secrets) > 0 && p.request.Tool.Adapter }

// lacksServer is why an adapter that is not asked yet could start nothing here, as far as that
// is known: a PATH of the call's own, or a path below its folder, is for the adapter to follow.
func (w *Worker) lacksServer(r supervisor.Request) error {
	i := slices.Index(r.Tool.Args, "--")
	if i < 0 || i+1 == len(r.Tool.Args) {
		return nil
	}
	name := r.Tool.Args[i+1]
	if strings.Contains(name, "/") != filepath.IsAbs(name) || slices.ContainsFunc(r.Env, func(v string) bool { return strings.HasPrefix(v, "PATH=") }) {
		return nil
	}
	_, err := w.host.Program(r)
	return err
}

// boundTimeout has the ceiling cut what is asked for.
func (w *Worker) boundTimeout(p *planned) {
	if w.config.Ceilings.Timeout > 0 {
		p.request.Timeouts = append(p.request.Timeouts, budget.Ask{
			Layer: budget.LayerClient, TimeoutUnset: true, Max: w.config.Ceilings.Timeout, Detail: "the ceiling of worker " + w.config.Name,
		})
	}
}

// whyOf tells what may do another time from what cannot be done here.
func whyOf(err error) fleetv1.Why {
	if r, ok := errors.AsType[*supervisor.Refusal](err); ok && r.Status == api.StatusOverloaded {
		return fleetv1.Why_WHY_BUSY
	}
	return fleetv1.Why_WHY_CANNOT
}

// capTimeout bounds a timeout that is over the ceiling because the arguments ask for more;
// any other is refused.
func (w *Worker) capTimeout(ctx context.Context, p *planned) (why fleetv1.Why, err error) {
	p.giveUp()
	e, err := w.host.Explain(ctx, p.request)
	if err != nil {
		return whyOf(err), err
	}
	if err := w.config.Ceilings.CheckTimeout(e.Timeout.Timeout); err != nil {
		return fleetv1.Why_WHY_CEILING, err
	}
	w.boundTimeout(p)
	if p.call, err = w.host.Prepare(ctx, p.request); err != nil {
		return whyOf(err), err
	}
	return fleetv1.Why_WHY_UNSPECIFIED, nil
}
