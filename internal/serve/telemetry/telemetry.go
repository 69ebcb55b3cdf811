package telemetry

import (
	"cmp"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/turn"
)

// Config of a Telemetry. Known and Load must be set; they may be called from
// any goroutine.
type Config struct {
	// Known says whether the catalogue has a tool of this name.
	Known func(tool string) bool
	// Tools, if not nil, are the names of those that the catalogue has at present;
	// it is asked for each scrape, and must not wait for a tool. Their counters are
	// there as 0 before their first call.
	Tools func() []string
	// Load is asked for each scrape.
	Load func() Load
	// Version is the host's.
	Version string
	// Export is where telemetry is sent; the zero value sends nothing.
	Export Export
	// Logger is silent if nil.
	Logger hclog.Logger
}

// Telemetry counts. Its methods may be called from any goroutine.
type Telemetry struct {
	tools   *tools
	offered func() []string
	metrics *metrics
	export  *exports // nil where nothing is sent
}

// ended is a call that has its result.
type ended struct {
	result *api.Result
	tool   string // fit for a label
	asked  time.Time
	over   time.Time
	parent string // the trace context that it came with
	own    string // and the one that Trace gave; may be empty
	id     string // the model's, of the call
	turn   string
}

// New makes one. An error says what of Export cannot be.
func New(c Config) (*Telemetry, error) {
	c.Logger = cmp.Or(c.Logger, hclog.NewNullLogger())
	m := newMetrics(c)
	t := &Telemetry{tools: &tools{known: c.Known, begin: m.beginTool, seen: map[string]bool{}}, offered: c.Tools, metrics: m}
	var err error
	if t.export, err = newExports(c, t.metrics, t.Metrics()); err != nil {
		return nil, err
	}
	return t, nil
}

// Metrics are all of them, as Prometheus has them.
func (t *Telemetry) Metrics() prometheus.Gatherer { return gatherer{t} }

// Observe takes the records of a turn; see turn.Config. It keeps none of them.
func (t *Telemetry) Observe(records []turn.Record) {
	for i := range records {
		t.one(&records[i])
	}
}

func (t *Telemetry) one(record *turn.Record) {
	t.metrics.event(&record.Event)
	if record.Result == nil {
		return
	}
	c := &ended{
		result: record.Result, tool: t.tools.of(record.Event.Tool), asked: record.Asked, over: record.Event.Time,
		parent: record.TraceParent, own: record.Trace, id: record.Event.CallID, turn: record.Event.TurnID,
	}
	if at := record.Result.Marks.Done; !at.IsZero() {
		c.over = at
	}
	t.metrics.call(c)
	if traces := t.traces(); traces != nil {
		traces.take(newTraced(c))
	}
}

// Described counts that a tool was asked what it is; failed is nil if it said
// so.
func (t *Telemetry) Described(took time.Duration, failed *api.Result) {
	t.metrics.rpc(budget.MessageRoute, "Describe", took, failed != nil && failed.Status == api.StatusTimeout)
}

// JournalFailed counts a write to the journal that failed.
func (t *Telemetry) JournalFailed() { t.metrics.journalErrors.WithLabelValues().Inc() }

// Reloaded counts an attempt to load the configuration anew.
func (t *Telemetry) Reloaded(ok bool) { t.metrics.reloads.WithLabelValues(reloadResult(ok)).Inc() }

// AuditLost counts audit records that could not be sent somewhere.
func (t *Telemetry) AuditLost(to string, n int) {
	t.metrics.lostAudit.WithLabelValues(to).Add(float64(n))
}

// Close sends what is still to be sent, for at most closeLimit.
func (t *Telemetry) Close() {
	if t.export != nil {
		t.export.close()
	}
}
