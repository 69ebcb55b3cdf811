package conformance

import (
	"cmp"
	"encoding/json"
	"slices"

	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// repertoire are the calls that a tool is tried with.
type repertoire struct {
	// quick end by themselves, for all that is known; long do not. illegal are
	// cases whose arguments a host refuses, as they expect.
	quick, long, illegal []call
	// unfit are the failures of those that do not expect it.
	unfit []Finding
	// missing says why there is no quick call.
	missing string
}

func (s *suite) repertoire(tool *pluginv1.ToolDescription, only bool) (r repertoire) {
	cases, err := s.o.Cases.of(tool.GetName(), only)
	if err != nil {
		r.missing = err.Error()
		return r
	}
	for _, c := range cases {
		err := satisfies(tool.GetInputSchema(), []byte(c.Arguments))
		switch {
		case err != nil && c.Expect != expectError:
			r.unfit = append(r.unfit, failed("correct the case, or the input schema; or say expect: error in the case",
				"%s: its arguments do not fit the input schema: %s", c.Name, firstLine(err.Error())))
		case err != nil:
			r.illegal = append(r.illegal, c)
		case c.Long:
			r.long = append(r.long, c)
		default:
			r.quick = append(r.quick, c)
		}
	}
	if len(r.quick) > 0 {
		return r
	}
	made, err := makeUp(tool.GetInputSchema())
	if err != nil {
		r.missing = "no arguments could be made up: " + firstLine(err.Error()) + ": give a case"
		return r
	}
	same := func(c call) bool { return c.Arguments == string(made) }
	if !slices.ContainsFunc(r.long, same) {
		r.quick = []call{{Name: "made-up " + string(made), Arguments: string(made), MadeUp: true, TimeoutMs: madeUpTimeoutMs}}
	}
	return r
}

// live tries the rules about one tool.
func (s *suite) live(tool *pluginv1.ToolDescription, only, sound bool) {
	s.begin(tool.GetName())
	if !sound {
		s.skipRest("no host takes its description as it is", toolRules...)
		return
	}
	calls := s.repertoire(tool, only)
	reply, stream := s.calls(tool, calls)
	for _, r := range []rule{ruleStream, ruleCases, ruleStructured, ruleLeftovers, ruleQuiet} {
		f, tried := reply.Findings[r.id]
		if !tried {
			f = stream
		}
		if r == ruleCases && f.Status == Skip && len(calls.long)+len(calls.illegal) > 0 {
			f = skipped("no case ends by itself: give one that does")
		}
		if r == ruleCases {
			f = worst(append(calls.unfit, f))
		}
		s.add(r, f)
	}
	if f := reply.Findings[ruleStream.id]; f.Status == Fail || stream.Status == Fail {
		s.skipRest("its calls do not end as they should", toolRules[5:]...)
		return
	}
	s.flow(tool, calls, reply)
}

// worst is the first of the worst.
func worst(findings []Finding) Finding {
	var t tally
	for _, f := range findings {
		t.add(f)
	}
	return t.worst
}

// calls has the quick ones made. Without a reply the finding says why.
func (s *suite) calls(tool *pluginv1.ToolDescription, calls repertoire) (*reply, Finding) {
	none := &reply{Findings: map[string]Finding{}}
	if len(calls.quick) == 0 {
		calls.missing = cmp.Or(calls.missing, "no case ends by itself")
		return none, skipped("%s", calls.missing)
	}
	r, f := s.send(&job{Do: "calls", Tool: tool.GetName(), Calls: calls.quick, OutputSchema: json.RawMessage(tool.GetOutputSchema())})
	if r == nil {
		return none, f
	}
	return r, f
}

// flow tries what takes calls that are known to be sound.
func (s *suite) flow(tool *pluginv1.ToolDescription, calls repertoire, r *reply) {
	var ended []call
	declared := len(calls.long) > 0
	for i, c := range calls.quick {
		switch {
		case slices.Contains(r.Running, i) && declared: // there is better
		case slices.Contains(r.Running, i):
			calls.long = append(calls.long, c)
		case !slices.Contains(r.Wrong, i):
			ended = append(ended, c)
		}
	}
	flushing, loud := pick(calls.quick, r.Flushed), pick(calls.quick, r.Loud)
	s.add(ruleTogether, s.together(tool, ended))
	_, f := s.with(tool, "bad-arguments", ruleArguments, badArguments(tool.GetInputSchema()))
	s.add(ruleArguments, f)
	stopped, f := s.with(tool, "cancel", ruleCancel, calls.long)
	s.add(ruleCancel, f)
	flushing, loud = append(flushing, pick(calls.long, stopped.Flushed)...), append(loud, pick(calls.long, stopped.Loud)...)
	f, stuck := r.Findings[ruleFlush.id]
	if !stuck {
		_, f = s.with(tool, "flush", ruleFlush, flushing)
	}
	s.add(ruleFlush, f)
	_, f = s.with(tool, "backpressure", ruleBackpressure, loud)
	s.add(ruleBackpressure, f)
	s.add(ruleSupervised, s.supervised(tool.GetName(), append(ended, calls.illegal...)))
	s.add(rulePartial, s.partial(tool.GetName(), calls.long))
}

func pick(calls []call, indices []int) (list []call) {
	for _, i := range indices {
		list = append(list, calls[i])
	}
	return list
}

func (s *suite) together(tool *pluginv1.ToolDescription, ended []call) Finding {
	if tool.GetConcurrency() == pluginv1.Concurrency_CONCURRENCY_EXCLUSIVE {
		return skipped("it says that it is exclusive")
	}
	_, f := s.with(tool, "together", ruleTogether, ended)
	return f
}

// wanting says what is missing where a rule has no call to be tried with.
var wanting = map[rule]string{
	ruleCancel:       "no call runs for long: give a case with long: true",
	ruleTogether:     "no call ends by itself: give a case that does",
	ruleFlush:        "no call sent a Flush: give a case that does, if the tool has any",
	ruleBackpressure: "no call sent much: nothing to hold back",
}

// with has the driver try a rule with calls.
func (s *suite) with(tool *pluginv1.ToolDescription, do string, r rule, calls []call) (*reply, Finding) {
	none := &reply{}
	if len(calls) == 0 {
		return none, skipped("%s", wanting[r])
	}
	reply, f := s.send(&job{Do: do, Tool: tool.GetName(), Calls: calls, OutputSchema: json.RawMessage(tool.GetOutputSchema())})
	if reply == nil {
		return none, f
	}
	return reply, reply.Findings[r.id]
}
