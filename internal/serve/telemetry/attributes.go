package telemetry

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/sandbox"
)

// Attributes of OpenTelemetry's conventions for generative AI, which are still
// in development and have no package:
// https://github.com/open-telemetry/semantic-conventions-genai
const (
	operationName = "gen_ai.operation.name"
	toolName      = "gen_ai.tool.name"
	toolType      = "gen_ai.tool.type"
	toolCallID    = "gen_ai.tool.call.id"
	errorType     = "error.type"
)

// newTraced takes what a trace shows. Nothing of it is text of a tool, a model
// or a human, but for the ids.
func newTraced(c *ended) traced {
	r := c.result
	t := traced{
		name: "execute_tool " + c.tool, kind: trace.SpanKindInternal, parent: c.parent, own: c.own, asked: c.asked, over: c.over, status: r.Status, phases: phases(r),
		attributes: []attribute.KeyValue{
			attribute.String(operationName, "execute_tool"), attribute.String(toolName, c.tool), attribute.String(toolType, "function"),
			attribute.String(toolCallID, printable(c.id)), attribute.String("toolhost.turn.id", printable(c.turn)),
			attribute.String("toolhost.status", statuses.of(string(r.Status))),
		},
	}
	if r.Status != api.StatusOK {
		t.attributes = append(t.attributes, attribute.String(errorType, statuses.of(string(r.Status))))
	}
	if r.Where != nil {
		t.attributes = append(t.attributes, attribute.String("toolhost.worker", printable(r.Where.Worker)))
	}
	t.attributes = append(t.attributes, details(r)...)
	if r.Kill.Cause != "" {
		t.kill = []attribute.KeyValue{
			attribute.String("toolhost.kill.cause", killCauses.of(r.Kill.Cause)), attribute.String("toolhost.kill.stage", killStages.of(r.Kill.Stage)),
			attribute.Int("toolhost.kill.reaped", r.Kill.Reaped), attribute.Int("toolhost.kill.survivors", r.Kill.Survivors),
		}
	}
	return t
}

// phases are those that spans are made of. Of a call that a worker has made, this machine
// knows how long it took to find one.
func phases(r *api.Result) (list []api.Phase) {
	for _, p := range r.Marks.Phases() {
		switch {
		case p.Name == api.PhaseQueue && r.Where != nil:
			p.Name = "place"
			list = append(list, p)
		case p.Name == api.PhaseQueue, p.Name == api.PhaseStart, p.Name == api.PhaseRun, p.Name == api.PhaseKill && r.Kill.Cause != "":
			list = append(list, p)
		}
	}
	return list
}

// details are those of a call that had a slot.
func details(r *api.Result) (list []attribute.KeyValue) {
	if r.Marks.Admitted.IsZero() {
		return nil
	}
	list = append(list,
		attribute.String("toolhost.timeout.profile", profiles.of(r.Timing.Profile)),
		attribute.Bool("toolhost.overran", r.Overran), attribute.Bool("toolhost.partial", r.Partial),
		attribute.String("toolhost.sandbox.tier", tiers.of(r.Sandbox.Tier)), attribute.String("toolhost.instance", instances.of(r.Instance)),
		attribute.Int64("toolhost.cpu_ms", r.Usage.CPUUserMs+r.Usage.CPUSystemMs), attribute.Int64("toolhost.memory_peak_bytes", r.Usage.MemoryPeakBytes),
	)
	if r.Timing.TimeoutMs != nil {
		list = append(list, attribute.Int64("toolhost.timeout.ms", *r.Timing.TimeoutMs))
	}
	if r.Timing.HumanWaitMs > 0 {
		list = append(list, attribute.Int64("toolhost.human_wait_ms", r.Timing.HumanWaitMs))
	}
	if n := r.Network; n != nil && n.Mode == sandbox.NetworkGrants {
		all, refused := n.Total()
		list = append(list,
			attribute.Int64("toolhost.network.connections", all.Connections), attribute.Int64("toolhost.network.refused", refused),
			attribute.Int64("toolhost.network.sent_bytes", all.SentBytes), attribute.Int64("toolhost.network.received_bytes", all.ReceivedBytes),
		)
	}
	if r.Exit.Code != nil {
		list = append(list, attribute.Int("toolhost.exit_code", *r.Exit.Code))
	}
	return list
}

var instances = wordsOf(api.InstanceFresh, api.InstancePrestarted, api.InstanceReused)

// printable keeps ids, which models and programs choose, to plain characters;
// they are bounded already.
func printable(id string) string {
	clean := []byte(id)
	for i, b := range clean {
		if b < 0x21 || b > 0x7e {
			clean[i] = '_'
		}
	}
	return string(clean)
}
