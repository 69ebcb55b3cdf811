package telemetry

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/supervisor"
)

// Load is how much a host has to do, and what it stands on.
type Load struct {
	// Running are calls with a slot, Waiting those in the queue, both at workers, too,
	// Kept the kept processes, Stuck the calls whose processes cannot be killed.
	Running, Waiting, Kept, Stuck int
	// Prestarted are the processes that wait for a call each.
	Prestarted supervisor.Prestarted
	// Sandboxes wait without a tool.
	Sandboxes supervisor.Sandboxes
	// Turns are active, Pending the questions that wait for a human.
	Turns, Pending int
	// Cgroup is the mode of the hierarchy: v2, hybrid or v1. CgroupDir is the
	// folder in cgroup2 with all calls below it, where it can be seen.
	Cgroup, CgroupDir string
	// JournalBytes are what the journal takes on disk; negative without one.
	JournalBytes int64
	// Workers are those of the fleet.
	Workers []api.Worker
	// Refused is how many messages the daemon and its workers have refused.
	Refused uint64
}

// probe looks at the host when somebody asks for its metrics.
type probe struct {
	load    func() Load
	version string
	own     string // the daemon's cgroup; empty if it cannot be seen

	build, cgroup, running, waiting, kept, stuck, turns, pending, journal, pressure measured
	sandboxes, sandboxesTaken                                                       measured
	prestarted, prestartedBytes, prestarts, workers, slots, refused                 measured
}

func newProbe(r *registrar, c Config) *probe {
	gauge := func(name, help string, labels ...string) measured {
		return r.measured(prometheus.GaugeValue, name, help, labels...)
	}
	return &probe{
		load: c.Load, version: c.Version, own: cgroup.OwnFolder(),
		build:           gauge("toolhost_build_info", "1; its labels are the version, and that of Go.", "version", "goversion"),
		cgroup:          gauge("toolhost_cgroup_info", "1; its label is the layout of cgroups in use.", "mode"),
		running:         gauge("toolhost_calls_running", "Calls that have a slot, on this machine or at a worker."),
		waiting:         gauge("toolhost_calls_queued", "Calls that wait for a slot, on this machine or at a worker."),
		kept:            gauge("toolhost_processes_kept", "Processes of tools that are kept from call to call."),
		prestarted:      gauge("toolhost_processes_prestarted", "Processes of tools that wait for a call each."),
		prestartedBytes: gauge("toolhost_processes_prestarted_bytes", "Memory of these when they were last looked at."),
		prestarts:       r.measured(prometheus.CounterValue, "toolhost_prestarts_total", "Calls that could have a process which was started before them, by whether one waited (taken) or none did (missed); and processes that ended while they waited (died).", "outcome"),
		sandboxes:       gauge("toolhost_sandboxes_waiting", "Sandboxes without a tool that wait for a call each."),
		sandboxesTaken:  r.measured(prometheus.CounterValue, "toolhost_sandboxes_taken_total", "Calls that had such a sandbox."),
		stuck:           gauge("toolhost_calls_unkillable", "Calls whose processes could not be killed and are still there, each in a slot."),
		turns:           gauge("toolhost_turns_active", "Turns that are active."),
		pending:         gauge("toolhost_interactions_pending", "Questions that wait for a human."),
		journal:         gauge("toolhost_journal_size_bytes", "What the journal takes on disk; absent without a journal."),
		workers:         gauge("toolhost_fleet_workers", "Workers of the fleet that were heard within the hour, and have not left.", "state"),
		slots:           gauge("toolhost_fleet_slots", "Slots of the workers that take calls, by whether a call has them.", "use"),
		refused:         r.measured(prometheus.CounterValue, "toolhost_fleet_refused_messages_total", "Messages between daemon and workers that were refused by who got them: forged, changed, beyond the credit, or not for them. A worker tells all its daemons, so several count the same message."),
		pressure:        r.measured(prometheus.CounterValue, "toolhost_cgroup_pressure_seconds_total", "For how long some or all (full) of the processes of a cgroup stood still for want of a resource: those of the daemon, or of all calls. Absent where the kernel does not tell.", "group", "resource", "severity"),
	}
}

// Describe implements prometheus.Collector.
func (p *probe) Describe(to chan<- *prometheus.Desc) {
	for _, m := range []measured{p.build, p.cgroup, p.running, p.waiting, p.kept, p.prestarted, p.prestartedBytes, p.prestarts, p.sandboxes, p.sandboxesTaken, p.stuck, p.turns, p.pending, p.journal, p.workers, p.slots, p.refused, p.pressure} {
		to <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (p *probe) Collect(to chan<- prometheus.Metric) {
	load := p.load()
	p.build.send(to, 1, p.version, runtime.Version())
	p.cgroup.send(to, 1, hierarchies.of(load.Cgroup))
	p.running.send(to, float64(load.Running))
	p.waiting.send(to, float64(load.Waiting))
	p.kept.send(to, float64(load.Kept))
	p.prestarted.send(to, float64(load.Prestarted.Processes))
	p.prestartedBytes.send(to, float64(load.Prestarted.MemoryBytes))
	for outcome, n := range map[string]int64{"taken": load.Prestarted.Taken, "missed": load.Prestarted.Missed, "died": load.Prestarted.Died} {
		p.prestarts.send(to, float64(n), outcome)
	}
	p.sandboxes.send(to, float64(load.Sandboxes.Waiting))
	p.sandboxesTaken.send(to, float64(load.Sandboxes.Taken))
	p.stuck.send(to, float64(load.Stuck))
	p.turns.send(to, float64(load.Turns))
	p.pending.send(to, float64(load.Pending))
	if load.JournalBytes >= 0 {
		p.journal.send(to, float64(load.JournalBytes))
	}
	p.fleet(load.Workers, to)
	p.refused.send(to, float64(load.Refused))
	for group, dir := range map[string]string{"daemon": p.own, "calls": load.CgroupDir} {
		for _, stall := range readPressure(dir) {
			p.pressure.send(to, stall.seconds, group, stall.resource, stall.severity)
		}
	}
}

// fleet sends each state, so that those without workers are seen as 0.
func (p *probe) fleet(workers []api.Worker, to chan<- prometheus.Metric) {
	states := map[string]int{api.WorkerTaking: 0, api.WorkerDraining: 0, api.WorkerDrained: 0, api.WorkerSuspect: 0, api.WorkerIncompatible: 0}
	free, taken := 0, 0
	for _, w := range workers {
		states[w.State]++
		if w.State == api.WorkerTaking {
			free, taken = free+w.Free, taken+w.Slots-w.Free
		}
	}
	for state, n := range states {
		p.workers.send(to, float64(n), state)
	}
	p.slots.send(to, float64(free), "free")
	p.slots.send(to, float64(taken), "taken")
}
