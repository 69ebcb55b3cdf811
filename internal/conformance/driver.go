package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/toolhost/toolhost/plugin"
)

// job is what the driver is to try. It and reply travel as text in the
// driver's arguments and result.
type job struct {
	Do     string   `json:"do"`
	Binary string   `json:"binary"`
	Dir    string   `json:"dir,omitempty"`
	Args   []string `json:"args,omitempty"`
	Tool   string   `json:"tool,omitempty"`
	Calls  []call   `json:"calls,omitempty"`
	// OutputSchema is the tool's; empty if it has none.
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	GraceMs      int64           `json:"graceMs"`
	// PatienceMs is how long the binary may take to start, and to answer what
	// needs no work.
	PatienceMs int64 `json:"patienceMs"`
}

func (j *job) patience() time.Duration { return time.Duration(j.PatienceMs) * time.Millisecond }

func (j *job) grace() time.Duration { return time.Duration(j.GraceMs) * time.Millisecond }

// call is one set of arguments.
type call struct {
	Name string `json:"name"`
	// Arguments are JSON, or not where it is the point.
	Arguments string `json:"arguments"`
	// MadeUp: nobody said what is to come of it.
	MadeUp bool `json:"madeUp,omitempty"`
	// Expect is ok or error; Text must be in its content; Long: it does not end
	// by itself.
	Expect string `json:"expect,omitempty"`
	Text   string `json:"text,omitempty"`
	Long   bool   `json:"long,omitempty"`
	// Partial: it shows something before it ends.
	Partial   bool  `json:"partial,omitempty"`
	TimeoutMs int64 `json:"timeoutMs"`
}

func (c *call) timeout() time.Duration { return time.Duration(c.TimeoutMs) * time.Millisecond }

// reply is what the driver has found.
type reply struct {
	// Findings are by the id of their rule.
	Findings map[string]Finding `json:"findings"`
	// Description is the binary's DescribeResponse (protobuf).
	Description []byte `json:"description,omitempty"`
	// Running are the indices of calls that had not ended in time.
	Running []int `json:"running,omitempty"`
	// Wrong are those of calls that did not come to what their case says.
	Wrong []int `json:"wrong,omitempty"`
	// Flushed are those of calls that sent a Flush, Loud of such as sent a lot.
	Flushed []int `json:"flushed,omitempty"`
	Loud    []int `json:"loud,omitempty"`
}

// note remembers what a call is good for.
func (r *reply) note(i int, o outcome) {
	if o.flushed && !slices.Contains(r.Flushed, i) {
		r.Flushed = append(r.Flushed, i)
	}
	if o.bytes >= loudContent && !slices.Contains(r.Loud, i) {
		r.Loud = append(r.Loud, i)
	}
}

func (r *reply) set(rule rule, f Finding) { r.Findings[rule.id] = f }

// driverTool is the name of the driver's one tool.
const driverTool = "conformance"

type driverInput struct {
	Job string `json:"job"`
}

type driverOutput struct {
	Reply string `json:"reply"`
}

// ServeDriver is the whole of the process that Options.Driver names. It returns
// when its host says goodbye.
func ServeDriver() {
	plugin.Serve(plugin.NewTool(plugin.Tool{Name: driverTool, Description: "Holds a plugin to the protocol."}, drive))
}

func drive(ctx context.Context, in driverInput, _ *plugin.Output) (driverOutput, error) {
	var j job
	if err := json.Unmarshal([]byte(in.Job), &j); err != nil {
		return driverOutput{}, err
	}
	b, err := newBench(&j)
	if err != nil {
		return driverOutput{}, err
	}
	defer b.close()
	do, known := duties[j.Do]
	if !known {
		return driverOutput{}, fmt.Errorf("bug: no duty %q", j.Do)
	}
	r := &reply{Findings: map[string]Finding{}}
	do(ctx, b, r)
	raw, err := json.Marshal(r)
	return driverOutput{string(raw)}, err
}

// duties are what a driver can be told to do.
var duties = map[string]func(context.Context, *bench, *reply){
	"handshake": doHandshake, "by-hand": doByHand, "describe": doDescribe, "replies": doReplies, "unknown-tool": doUnknown,
	"calls": doCalls, "together": doTogether, "bad-arguments": doArguments,
	"cancel": doCancel, "flush": doFlush, "backpressure": doBackpressure,
}

// bench is where the binary is tried.
type bench struct {
	job     *job
	runtime string
	before  map[int]bool // processes that are not the driver's doing
}

func newBench(j *job) (*bench, error) {
	dir, err := os.MkdirTemp("", "c")
	if err != nil {
		return nil, err
	}
	b := &bench{job: j, runtime: dir}
	b.before = map[int]bool{}
	for _, p := range b.processes() {
		b.before[p.pid] = true
	}
	return b, nil
}

func (b *bench) close() {
	b.sweep()
	_ = os.RemoveAll(b.runtime)
}

// with runs the binary for one trial. Without a handshake there is no
// trial, and the finding says so.
func (b *bench) with(ctx context.Context, try func(*child) Finding) Finding {
	c, err := b.start(ctx)
	if err != nil {
		return failed("let every start of the binary succeed, also right after another", "it could not be started: %v", err)
	}
	defer b.stop(c)
	return try(c)
}
