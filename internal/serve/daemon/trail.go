package daemon

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/time/rate"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/access/tokens"
	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/internal/serve/audit"
	"github.com/toolhost/toolhost/internal/serve/httpapi"
	"github.com/toolhost/toolhost/internal/tools/config"
)

// trail records who did what, as a chain in the journal and in the log, which is usually
// kept on another machine.
type trail struct {
	logger   hclog.Logger
	journal  *journal.Journal // nil keeps none
	outboxes []*audit.Outbox  // to elsewhere

	order   sync.Mutex      // of records
	waiting []journal.Audit // for the journal
	lost    int             // more than can wait

	mu       sync.Mutex
	refuse   *rate.Limiter
	dropped  int                  // refusals that were too many
	lately   map[string]time.Time // refusals that are on record
	repeated int                  // of these
	since    time.Time            // the first of them
	tokens   tokens.OnRecord
}

// Bounds of recorded refusals: a client that is refused again and again must not displace
// other records.
const (
	refusalBurst = 30
	refusalEvery = 10 * time.Second
	refusalAgain = time.Hour // the same one
)

// note implements httpapi.Config.Note.
func (t *trail) note(who, action, what string) { t.add(who, action, what, "") }

// maxWaiting bounds the records that wait for a journal that fails.
const maxWaiting = 1024

// add records something. A record that the journal fails to take is logged and sent at once,
// and again when it has its place in the chain.
func (t *trail) add(who, action, what, outcome string) {
	a := journal.Audit{Time: time.Now(), Who: who, Action: action, What: what, Outcome: outcome}
	t.order.Lock()
	defer t.order.Unlock()
	if t.journal == nil {
		t.send(a)
		return
	}
	if len(t.waiting) < maxWaiting {
		t.waiting = append(t.waiting, a)
	} else {
		t.lost++
	}
	if err := t.chain(); err != nil {
		t.logger.Error("an audit record waits for the journal", "error", err)
		t.send(a)
	}
}

// flush puts what waits into the journal, if that works again.
func (t *trail) flush() {
	t.order.Lock()
	defer t.order.Unlock()
	_ = t.chain()
}

// chain puts what waits into the journal, in order, and a record of how many are missing. t.order
// is locked.
func (t *trail) chain() error {
	for len(t.waiting) > 0 || t.lost > 0 {
		if len(t.waiting) == 0 {
			t.waiting = []journal.Audit{{Time: time.Now(), Who: "daemon", Action: journal.ActionLost, What: fmt.Sprint(t.lost, " records")}}
			t.lost = 0
		}
		a, err := t.journal.Audit(t.waiting[0])
		if err != nil {
			return err
		}
		t.waiting = t.waiting[1:]
		t.send(a)
	}
	t.waiting = nil
	return nil
}

// send logs a record, and puts it into the outboxes.
func (t *trail) send(a journal.Audit) {
	for _, o := range t.outboxes {
		o.Put(a)
	}
	t.logger.Info(a.Action, "seq", a.Seq, "who", a.Who, "what", a.What, "outcome", a.Outcome, "hash", a.Hash)
}

// answered records who decided something about a call, by whatever means. What a tool asks
// its own client is in the turn's record alone: it could be so much that it displaces other
// records.
func (t *trail) answered(e api.Event) {
	if e.Interaction.OfClient() || e.Interaction == api.KindQuestionnaire {
		return
	}
	who, lasts, more := strings.Cut(e.By, api.ByFor)
	verdict := e.Outcome
	switch {
	case more:
		verdict = "yes, for the " + lasts + ", to"
	case e.Outcome == api.OutcomeAnswered && (e.Interaction == api.KindApproval || e.Interaction == api.KindConfirm):
		verdict = "yes to"
	case e.Outcome == api.OutcomeDenied:
		verdict = "no to"
	}
	what := verdict + " " + e.InteractionID + " of turn " + e.TurnID
	if e.Tool != "" {
		what += ", about " + e.Tool
	}
	t.add(who, "interaction.answer", what, "")
}

// refused implements httpapi.Config.Refused.
func (t *trail) refused(r httpapi.Refusal) {
	who, what, why := cmp.Or(r.Who, "somebody unknown"), r.Method+" "+r.Path+" from "+r.From, r.Err.Error()
	if !t.takes(strings.Join([]string{who, what, why}, "\n")) {
		return
	}
	t.further(true)
	t.add(who, journal.ActionRefused, what, why)
}

// takes says whether a refusal has a record of its own, and counts those that have none.
func (t *trail) takes(refusal string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.refuse == nil {
		t.refuse, t.lately = rate.NewLimiter(rate.Every(refusalEvery), refusalBurst), map[string]time.Time{}
	}
	now := time.Now()
	maps.DeleteFunc(t.lately, func(_ string, at time.Time) bool { return now.Sub(at) >= refusalAgain })
	if _, ok := t.lately[refusal]; ok {
		if t.repeated == 0 {
			t.since = now
		}
		t.repeated++
		return false
	}
	if !t.refuse.Allow() {
		t.dropped++
		return false
	}
	t.lately[refusal] = now // the limiter bounds how many there are
	return true
}

// further records how many refusals have no record since the last record of one: now, or only
// if some were too many and another record of a refusal may be made, or some repeated another
// one long ago: those may have been the last.
func (t *trail) further(now bool) {
	t.mu.Lock()
	n := 0
	if now || t.repeated > 0 && time.Since(t.since) >= refusalAgain || t.dropped > 0 && t.refuse.Allow() {
		n = t.dropped + t.repeated
		t.dropped, t.repeated = 0, 0
	}
	t.mu.Unlock()
	if n > 0 {
		t.add("daemon", journal.ActionRefused, "further requests", strconv.Itoa(n)+" more")
	}
}

// configured records which configuration is in force, with the hash of its files, so that
// changes between two daemons show, too.
func (t *trail) configured(action string, loaded *config.Loaded) {
	t.add("daemon", action, cmp.Or(loaded.Path, "no file")+" sha256:"+loaded.Hash, "")
}

func (t *trail) notConfigured(err error) {
	t.add("daemon", "config.reload", "", "not loaded: "+err.Error())
}

// close sends what waits.
func (t *trail) close() {
	var all sync.WaitGroup
	for _, o := range t.outboxes {
		all.Go(o.Close)
	}
	all.Wait()
}

// late is by how much a change must be older than its record for the record to say so.
const late = time.Minute

// watchTokens records changes of tokens that the chain lacks, including those made while no
// daemon ran, aborts the turns of revoked tokens, and revokes again what is on record as
// revoked.
func (d *daemon) watchTokens() {
	if d.tokens == nil {
		return
	}
	list, err := d.tokens.List()
	if err != nil {
		return // who bears one is told, and so is the log
	}
	now := time.Now()
	for _, c := range d.trail.tokens.Missing(list, now) {
		outcome := ""
		if !c.At.IsZero() && now.Sub(c.At) > late {
			outcome = "at " + c.At.UTC().Format(time.RFC3339)
		}
		d.trail.add(c.Who, c.Action, c.What, outcome)
		d.trail.tokens.NoteChange(c)
		if c.Ended != "" {
			d.abortOf("token "+c.Ended, c.At)
		}
		if c.Unrevoked == "" {
			continue
		}
		if _, err := d.tokens.Revoke(c.Unrevoked, "daemon"); err != nil {
			d.logger.Error("a token that is on record as revoked is valid again: revoke it", "token", c.What, "error", err)
		}
	}
}

// abortOf aborts an identity's turns that began before a time, or all of them if it is zero:
// later ones are of another token of the name.
func (d *daemon) abortOf(owner string, before time.Time) {
	for _, info := range d.turns.Active() {
		if !before.IsZero() && !info.StartedAt.Before(before) {
			continue
		}
		if t, ok := d.turns.Turn(info.TurnID); ok && t.Owner() == owner {
			t.AbortOnce(api.ReasonUser)
		}
	}
}
