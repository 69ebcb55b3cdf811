package mcpserver

//lint:file-ignore SA1019 sampling, roots and logging leave MCP with version 2026-07-28: they are passed on for those that have them

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/gateway"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/verbatim"
	"github.com/toolhost/toolhost/internal/tools/mcpcall"
	"github.com/toolhost/toolhost/turn"
)

// pendingRequest is a request that waits for a call.
type pendingRequest struct {
	ctx     context.Context // the request's, by which a notification finds its stream
	session *mcpsdk.ServerSession
	token   any      // for progress; nil means none
	news    chan any // of progress or log; nil before the first
	sender  sync.WaitGroup
}

// multiRound is the first version in which servers make no requests.
const multiRound = gateway.MultiRound

// attach makes a request the one that gets questions and progress.
func (c *call) attach(ctx context.Context, r *mcpsdk.CallToolRequest) *pendingRequest {
	l := &pendingRequest{ctx: ctx, session: r.Session, token: r.Params.GetProgressToken()}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = append(c.pending, l)
	if c.parked != nil {
		c.parked.Stop()
		c.parked = nil
	}
	if len(c.questions) > 0 { // what is still asked, is asked here
		c.signal()
	}
	return l
}

// detach returns when nothing more is sent for the request.
func (c *call) detach(l *pendingRequest) {
	c.mu.Lock()
	c.pending = slices.DeleteFunc(c.pending, func(one *pendingRequest) bool { return one == l })
	if l.news != nil {
		close(l.news)
	}
	c.mu.Unlock()
	l.sender.Wait()
}

// newest is the newest request that waits, or nil.
func (c *call) newest() *pendingRequest {
	if n := len(c.pending); n > 0 {
		return c.pending[n-1]
	}
	return nil
}

const (
	// maxNews bounds the notifications that wait for a slow client; those beyond
	// are left out.
	maxNews = 64
	// outputBeat is the least time between two notifications of output.
	outputBeat = 250 * time.Millisecond
	// maxShownBytes is of the output that one shows.
	maxShownBytes = 200
)

// tell has the client told, unless too much waits to be. The call is locked.
func (l *pendingRequest) tell(one any) {
	if l.news == nil {
		l.news = make(chan any, maxNews)
		l.sender.Go(l.send)
	}
	select {
	case l.news <- one:
	default:
	}
}

func (l *pendingRequest) send() {
	for one := range l.news { // a client that is gone is told of by its context
		switch params := one.(type) {
		case mcpsdk.ProgressNotificationParams:
			_ = l.session.NotifyProgress(l.ctx, &params)
		case mcpsdk.LoggingMessageParams:
			_ = l.session.Log(l.ctx, &params)
		}
	}
}

// watch follows the turn until it is over.
func (c *call) watch() {
	p, w := &progress{began: time.Now()}, humanWaits{c: c, open: map[string]api.InteractionKind{}}
	caughtUp := sync.OnceFunc(func() { close(c.caughtUp) })
	defer caughtUp()
	for r := range c.t.Events(context.Background(), 0) {
		switch r.Event.Kind {
		case api.EventFinished, api.EventFailed:
			caughtUp()
		case api.EventLog:
			c.log(r.Event)
		case api.EventTimeout:
			c.end()
		case api.EventInteractionPending:
			w.is(r.Event.InteractionID, r.Event.Interaction, *r.Event.Pending)
		case api.EventGap:
			w.recount()
		}
		if params, tell := p.of(r); tell {
			c.tell(params)
		}
	}
}

// end notes that the call's time is over.
func (c *call) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ending = true
}

// humanWaits has the session's clock stand still while humans are waited for.
type humanWaits struct {
	c    *call
	open map[string]api.InteractionKind // questions, by id
}

func (w humanWaits) is(id string, kind api.InteractionKind, pending bool) {
	if _, known := w.open[id]; known == pending { // since a recount
		return
	}
	if pending {
		w.open[id] = kind
	} else {
		delete(w.open, id)
	}
	w.c.session.waits(pending, kind != api.KindApproval && kind != api.KindConfirm)
}

// recount asks the turn, where events that say it are missing.
func (w humanWaits) recount() {
	info, _ := w.c.t.Info()
	now := map[string]bool{}
	for _, one := range info.PendingInteractions {
		now[one.ID] = true
		w.is(one.ID, one.Kind, true)
	}
	for id, kind := range w.open {
		w.is(id, kind, now[id])
	}
}

// tell passes progress on to the newest request, if that wants it.
func (c *call) tell(params mcpsdk.ProgressNotificationParams) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.newest()
	if l == nil || l.token == nil {
		return
	}
	params.ProgressToken = l.token
	l.tell(params)
}

// log passes a wrapped server's message on; whether the client wants it, its session
// knows. One kind of them is a notification of another name.
func (c *call) log(e api.Event) {
	if e.Log == nil {
		return
	}
	if e.Log.Logger == mcpcall.ElicitationComplete {
		c.s.gateway.Notice(c.origin(), mcpcall.ElicitationComplete, e.Log.Data)
		return
	}
	params := mcpsdk.LoggingMessageParams{Level: mcpsdk.LoggingLevel(e.Log.Level), Logger: e.Log.Logger, Data: e.Log.Data, Meta: verbatim.MetaOf(e.Log.Meta)}
	if len(e.Log.Data) == 0 {
		params.Data = e.Message
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.newest(); l != nil {
		l.tell(params)
	}
}

// progress makes notifications of events. What it counts are seconds, which
// always grow; the total is an estimate by the part that the tool says is done.
type progress struct {
	began    time.Time
	sent     float64
	fraction float64
	shown    time.Time // when output was told of
}

func (p *progress) of(r *turn.Record) (params mcpsdk.ProgressNotificationParams, tell bool) {
	now, e := time.Now(), r.Event
	switch e.Kind {
	case api.EventProgress:
		params.Message = e.Message
		if e.Fraction != nil && *e.Fraction > 0 && *e.Fraction <= 1 {
			p.fraction = *e.Fraction
		}
		params.Message = cmp.Or(params.Message, fmt.Sprintf("running for %ds", e.ElapsedMs/1000))
	case api.EventOutput:
		if params.Message = lastLine(e); params.Message == "" || now.Sub(p.shown) < outputBeat {
			return params, false
		}
		p.shown = now
	case api.EventInteractionRequest:
		params.Message = "waiting for a human"
	case api.EventGap:
		params.Message = fmt.Sprintf("events %d to %d of this call were lost", r.Gap.From, r.Gap.To)
	default:
		return params, false
	}
	params.Progress = max(now.Sub(p.began).Seconds(), p.sent+1e-6)
	p.sent = params.Progress
	if p.fraction > 0 {
		params.Total = params.Progress / p.fraction
	}
	return params, true
}

// lastLine is the end of what was put out, in one line.
func lastLine(e api.Event) string {
	if e.Content == nil {
		return ""
	}
	text := strings.TrimRight(e.Content.Text, "\r\n\t ")
	text = text[strings.LastIndexByte(text, '\n')+1:]
	return cut(text, maxShownBytes)
}
