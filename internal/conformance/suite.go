package conformance

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/toolhost/toolhost/budget"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor"
)

// Options of Run.
type Options struct {
	// Tool is the binary; a Name limits the run to that tool of it.
	Tool supervisor.Tool
	// Driver starts a process that calls ServeDriver: the caller's own program,
	// usually.
	Driver supervisor.Tool
	// Dir is the working directory, which Cases must grant; empty means none in
	// particular.
	Dir string
	// Cases may be nil: then all arguments are made up.
	Cases *Cases
	// Grace is how long a call may take to end when it is told to. Zero is
	// budget.DefaultGrace.
	Grace time.Duration
	// Patience is how long the binary may take to start, and to answer what
	// needs no work; zero is defaultPatience. A supervisor would wait for as long
	// as the call may take.
	Patience time.Duration
	// Done, if not nil, is called with each check when it is made.
	Done func(Check)
}

// defaultPatience is what Options.Patience is by default.
const defaultPatience = 10 * time.Second

// Run tries every rule. It returns an error only if the binary cannot be tried
// at all: no such file, cases of tools that it does not have; or if ctx ends, beside
// a report of what was tried before.
func Run(ctx context.Context, host *supervisor.Supervisor, o Options) (*Report, error) {
	path := o.Tool.Path
	if found, err := exec.LookPath(path); err == nil { // as the supervisor does; it also says what is wrong
		path = found
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	o.Grace = cmp.Or(o.Grace, budget.DefaultGrace)
	o.Patience = cmp.Or(o.Patience, defaultPatience)
	o.Cases = cmp.Or(o.Cases, &Cases{})
	s := &suite{ctx: ctx, host: host, o: o, binary: path, report: &Report{SchemaVersion: 1, Binary: cmp.Or(o.Tool.Label, path), Checks: []Check{}}}
	began := time.Now()
	if err := s.run(); err != nil && ctx.Err() == nil {
		return nil, err
	}
	s.report.ElapsedMs = time.Since(began).Milliseconds()
	return s.report, context.Cause(ctx)
}

type suite struct {
	ctx    context.Context
	host   *supervisor.Supervisor
	o      Options
	binary string // the path of it, absolute
	report *Report
	began  time.Time     // of the check under way
	tool   string        // that it is about
	starts time.Duration // what the binary takes to start, generously
}

// run goes from what everything else needs to what needs everything.
func (s *suite) run() error {
	alone, err := s.describeAlone()
	if err != nil {
		return err
	}
	s.begin("")
	if f := s.drive("handshake", ruleHandshake); s.add(ruleHandshake, f) == Fail {
		s.skipRest("the handshake failed", ruleByHand, ruleDescribe, ruleNames, ruleSchemas, ruleClaims, ruleAlone, ruleReplies, ruleUnknown)
		return nil
	}
	s.add(ruleByHand, s.drive("by-hand", ruleByHand))
	description, f := s.describe()
	if s.add(ruleDescribe, f) == Fail {
		s.skipRest("it could not be described", ruleNames, ruleSchemas, ruleClaims, ruleAlone, ruleReplies, ruleUnknown)
		return nil
	}
	tools, err := s.tools(description)
	if err != nil {
		return err
	}
	sound := s.static(description.GetTools())
	s.begin("")
	if sound {
		s.add(ruleAlone, alone)
	} else {
		s.add(ruleAlone, skipped("no host takes its description as it is"))
	}
	s.add(ruleReplies, s.drive("replies", ruleReplies))
	s.add(ruleUnknown, s.drive("unknown-tool", ruleUnknown))
	for _, tool := range tools {
		s.live(tool, len(description.GetTools()) == 1, sound)
	}
	return nil
}

// begin starts the clock of a check.
func (s *suite) begin(tool string) { s.began, s.tool = time.Now(), tool }

// add notes what came of a check, and starts the next one's clock. Once the run
// is interrupted it notes nothing.
func (s *suite) add(r rule, f Finding) Status {
	if s.ctx.Err() != nil { // which may be all that was found
		return Skip
	}
	if f.Status == "" {
		f = skipped("not tried")
	}
	check := Check{ID: r.id, Title: r.title, Tool: s.tool, Finding: f, ElapsedMs: time.Since(s.began).Milliseconds()}
	s.report.Checks = append(s.report.Checks, check)
	if s.o.Done != nil {
		s.o.Done(check)
	}
	s.began = time.Now()
	return f.Status
}

func (s *suite) skipRest(why string, rules ...rule) {
	for _, r := range rules {
		s.add(r, skipped("%s", why))
	}
}

// tools are those to be tried.
func (s *suite) tools(d *pluginv1.DescribeResponse) (list []*pluginv1.ToolDescription, err error) {
	s.report.Version = d.GetVersion()
	names := []string{}
	for _, tool := range d.GetTools() {
		if !slices.Contains(names, tool.GetName()) {
			names = append(names, tool.GetName())
		}
		if s.o.Tool.Name == "" || s.o.Tool.Name == tool.GetName() {
			list = append(list, tool)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("the binary has no tool %q: it has %q", s.o.Tool.Name, names)
	}
	for i, c := range s.o.Cases.Cases {
		if c.Tool == "" && len(names) > 1 {
			return nil, fmt.Errorf("case %d names no tool: the binary has several, name one of %q", i+1, names)
		}
		if c.Tool != "" && !slices.Contains(names, c.Tool) {
			return nil, fmt.Errorf("case %d is of the tool %q: the binary has %q", i+1, c.Tool, names)
		}
	}
	return list, nil
}

// static judges the description; false if no call can be made by it.
func (s *suite) static(tools []*pluginv1.ToolDescription) bool {
	s.begin("")
	sound := s.add(ruleNames, checkNames(tools)) != Fail
	for _, tool := range tools {
		s.begin(tool.GetName())
		sound = s.add(ruleSchemas, checkSchemas(tool)) != Fail && sound
		s.add(ruleClaims, checkClaims(tool))
	}
	return sound
}

// describe has the driver ask.
func (s *suite) describe() (*pluginv1.DescribeResponse, Finding) {
	r, f := s.send(&job{Do: "describe"})
	if r == nil {
		return nil, f
	}
	if f = r.Findings[ruleDescribe.id]; f.Status == Fail {
		return nil, f
	}
	var d pluginv1.DescribeResponse
	if err := proto.Unmarshal(r.Description, &d); err != nil {
		return nil, failed("", "bug: the driver's answer: %v", err)
	}
	return &d, f
}
