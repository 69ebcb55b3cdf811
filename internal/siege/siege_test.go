package siege

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

const (
	// A quarter of the time is quiet before the siege, at most maxQuiet; what
	// comes behind it is as long.
	maxQuiet = time.Minute
	// worstCall bounds a neighbour's p99 however slow the machine is;
	// TOOLHOST_SIEGE_RATIO bounds it by the quiet one on a machine that does
	// nothing else.
	worstCall = 15 * time.Second
	// What the daemon may have when all clients have gone, within restBound: memory, and
	// files more than before.
	restingMemory, restingFiles = memoryBytes / 2, 16
)

// TestSiege has a daemon with 512 MiB stand 50 hostile tools and 50 hostile
// clients for as long as TOOLHOST_SIEGE says. It goes on, serves its neighbours,
// is itself again when they are gone, and stops in time while they are there,
// with nothing left.
func TestSiege(t *testing.T) {
	lasts, err := time.ParseDuration(os.Getenv("TOOLHOST_SIEGE"))
	if err != nil {
		t.Skip("takes its time: set TOOLHOST_SIEGE to how long, such as 20s, or run make siege")
	}
	began := time.Now()
	step := func(what string) { t.Logf("%5.1fs %s", time.Since(began).Seconds(), what) }
	d := serve(t)
	neighbours := d.settle()
	quietFor := min(lasts/4, maxQuiet)
	d.phase(quietFor, neighbours) // the first calls are slower
	quiet := d.phase(quietFor, neighbours)
	files := d.files()

	step("the siege begins")
	hostile, processor := d.hire(), d.processor()
	besieged := d.phase(lasts, neighbours)
	processor = d.processor() - processor
	step("the siege is over")
	told := hostile.dismiss(t)
	d.alone()
	step("the daemon is alone")
	after := d.phase(quietFor, neighbours)
	rss, filesAfter := d.rest(files.count() + restingFiles)

	d.hire() // and never dismissed
	d.phase(min(quietFor, 5*time.Second), neighbours)
	step("stopping under siege")
	stopped := d.stop()

	report(t, told, map[string]*days{"quiet": quiet, "siege": besieged, "after": after})
	t.Logf("memory: RSS at most %d MiB, %d MiB after; the kernel counted at most %d of %d MiB\nfiles of the daemon: %d before, %d after; CPU time in the siege %s\nstopped after %s, of at most %s",
		d.peak>>20, rss>>20, d.counts>>20, memoryBytes>>20, files.count(), filesAfter.count(), processor, stopped.Round(time.Millisecond), stopBound)
	if !rested(rss, filesAfter, files.count()+restingFiles) {
		t.Errorf("it keeps %d bytes of memory and the files %v, before %v", rss, filesAfter, files)
	}
	d.judge(told, quiet, besieged, after, stopped)
}

// phase is a time in which the neighbours live.
func (d *daemon) phase(lasts time.Duration, neighbours []neighbour) *days {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), lasts)
	defer cancel()
	seen, over := d.live(ctx, neighbours)
	over()
	if d.down() {
		_, kills := d.fence.used()
		d.t.Errorf("the daemon is down: %s, %d OOM kills", d.cmd.ProcessState, kills)
		for _, failure := range seen.failed[:min(len(seen.failed), 3)] {
			d.t.Log(failure)
		}
		d.t.FailNow()
	}
	return seen
}

// alone waits until nothing of the mob's runs any more; what it was asked and has
// not answered may wait on.
func (d *daemon) alone() {
	d.t.Helper()
	wait.Until(d.t, "all calls of the mob are over", func() bool {
		turns, err := d.client.Active(d.t.Context())
		return d.down() || err == nil && !slices.ContainsFunc(turns, func(t api.Turn) bool {
			return slices.ContainsFunc(t.CurrentTools, func(c api.CurrentTool) bool { return c.State != "asking" })
		})
	})
}

func (d *daemon) judge(told tale, quiet, besieged, after *days, stopped time.Duration) {
	d.t.Helper()
	quiet.check(d.t, "quiet")
	besieged.check(d.t, "siege")
	after.check(d.t, "after")
	for _, found := range told.Wrong {
		d.t.Error(found)
	}
	if told.Wrongs > len(told.Wrong) {
		d.t.Errorf("%d wrong answers in all", told.Wrongs)
	}
	if _, kills := d.fence.used(); kills > 0 {
		d.t.Errorf("%d OOM kills behind the fence", kills)
	}
	before, now := quantile(quiet.all(), 0.99), quantile(besieged.all(), 0.99)
	ratio, err := strconv.ParseFloat(os.Getenv("TOOLHOST_SIEGE_RATIO"), 64)
	if now > worstCall || err == nil && now.Seconds() > ratio*before.Seconds() {
		d.t.Errorf("the neighbours' p99 was %s, and is %s", before, now)
	}
	if code := d.cmd.ProcessState.ExitCode(); code != 0 || stopped > stopBound {
		d.t.Errorf("it stopped with %d after %s", code, stopped)
	}
	for _, left := range d.left() {
		d.t.Errorf("left: %s", left)
	}
	for line := range strings.Lines(d.log()) {
		if strings.Contains(line, "panic") || strings.Contains(line, "bug:") {
			d.t.Errorf("in its log: %.500s", line)
		}
	}
}

// all are the times of all neighbours.
func (s *days) all() []time.Duration { return slices.Concat(slices.Collect(maps.Values(s.took))...) }

var phases = []string{"quiet", "siege", "after"}

// report prints what there is to see.
func report(t *testing.T, told tale, seen map[string]*days) {
	t.Helper()
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "\nneighbour\tcalls quiet\tp50\tp99\tsiege\tp50\tp99\tafter\tp50\tp99\tp99 siege/quiet")
	row := func(name string, of func(*days) []time.Duration) {
		fmt.Fprint(table, name)
		for _, phase := range phases {
			took := of(seen[phase])
			fmt.Fprintf(table, "\t%d\t%s\t%s", len(took), quantile(took, 0.5).Round(time.Millisecond), quantile(took, 0.99).Round(time.Millisecond))
		}
		fmt.Fprintf(table, "\t%.1f\n", quantile(of(seen["siege"]), 0.99).Seconds()/quantile(of(seen["quiet"]), 0.99).Seconds())
	}
	for _, name := range slices.Sorted(maps.Keys(seen["quiet"].took)) {
		row(name, func(s *days) []time.Duration { return s.took[name] })
	}
	row("all", (*days).all)
	row("ready", func(s *days) []time.Duration { return s.ready })
	fmt.Fprintln(table, "\nhostile client\trounds\tunanswered")
	for _, name := range slices.Sorted(maps.Keys(told.Rounds)) {
		fmt.Fprintf(table, "%s\t%d\t%d\n", name, told.Rounds[name], told.Unanswered[name])
	}
	fmt.Fprintln(table, "\nhostile tool\toutcomes")
	for _, name := range slices.Sorted(maps.Keys(told.Statuses)) {
		fmt.Fprintf(table, "%s\t%v\n", name, told.Statuses[name])
	}
	_ = table.Flush()
	t.Log(text.String())
}
