package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// processCPU is the CPU time of one process's threads (proc_pid_stat(5)).
func processCPU(pid int) (time.Duration, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(raw), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("cannot read the CPU time of process %d", pid)
	}
	const tick = 10 * time.Millisecond // USER_HZ is 100 on all of Go's architectures
	user, errUser := strconv.Atoi(fields[11])
	system, errSystem := strconv.Atoi(fields[12])
	return time.Duration(user+system) * tick, cmp.Or(errUser, errSystem)
}

// report is what the race came to.
type report struct {
	*race
	missing []string
}

func (r report) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "peers.md"), []byte(r.markdown()), 0o644); err != nil {
		return err
	}
	if err := r.latencies(filepath.Join(dir, "latency.svg")); err != nil {
		return err
	}
	return r.rate(filepath.Join(dir, "rate.svg"))
}

func (r report) markdown() string {
	var b strings.Builder
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	fmt.Fprintf(&b, "%d processors, Linux %s, %s; %d rounds of %d runs each, in turn.", runtime.NumCPU(), strings.TrimSpace(string(kernel)), runtime.Version(), r.rounds, r.options.block)
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		fmt.Fprintf(&b, " Load at the end: %s.", strings.Fields(string(load))[0])
	}
	b.WriteString("\n\n| | p10 ms | p50 ms | p90 ms | p99 ms | p50 after a rest | CPU ms a run |")
	for _, callers := range r.callers {
		fmt.Fprintf(&b, " /s at %d |", callers)
	}
	b.WriteString(" held by |\n|---|---|---|---|---|---|---|" + strings.Repeat("---|", len(r.callers)) + "---|\n")
	for _, e := range r.entries {
		cpu := milliseconds(median(e.cpu))
		if e.server != nil {
			cpu += fmt.Sprintf(" (daemon %s)", milliseconds(median(e.ownCPU)))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |", e.name, e.percentile(10), e.percentile(50), e.percentile(90), e.percentile(99), e.rested(), cpu)
		for _, callers := range r.callers {
			b.WriteString(" " + e.rate(callers) + " |")
		}
		fmt.Fprintf(&b, " %s |\n", e.isolation)
	}
	b.WriteString(r.targets())
	for _, others := range []struct {
		what string
		list []string
	}{{"Not on PATH", r.missing}, {"Cannot run here", r.unfit}} {
		if len(others.list) > 0 {
			fmt.Fprintf(&b, "\n%s: %s.\n", others.what, strings.Join(others.list, ", "))
		}
	}
	return b.String()
}

func (e *entry) percentile(p int) string {
	sorted := slices.Sorted(slices.Values(e.took))
	return milliseconds(sorted[min(len(sorted)*p/100, len(sorted)-1)])
}

func (e *entry) rate(callers int) string {
	if len(e.perSecond[callers]) == 0 {
		return "fails"
	}
	return fmt.Sprintf("%.0f", median(e.perSecond[callers]))
}

// rested is the median of the runs behind a rest.
func (e *entry) rested() string {
	if len(e.rests) == 0 {
		return ""
	}
	return milliseconds(median(e.rests))
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.1f", ms(d)) }

func median[T cmp.Ordered](list []T) (middle T) {
	if len(list) > 0 {
		middle = slices.Sorted(slices.Values(list))[len(list)/2]
	}
	return middle
}

const plotWidth, plotHeight = 20 * vg.Centimeter, 11 * vg.Centimeter

// latencies draws which part of the runs took how long at most.
func (r report) latencies(path string) error {
	p := plot.New()
	p.Title.Text = "Time of a run that does nothing"
	p.X.Label.Text, p.Y.Label.Text = "milliseconds", "part of the runs, %"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Legend.Left, p.Legend.Top = true, true
	p.Add(plotter.NewGrid())
	for i, e := range r.entries {
		sorted := slices.Sorted(slices.Values(e.took))
		points := make(plotter.XYs, len(sorted))
		for j, took := range sorted {
			points[j] = plotter.XY{X: float64(took.Microseconds()) / 1000, Y: 100 * float64(j+1) / float64(len(sorted))}
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return err
		}
		line.Color, line.Dashes, line.Width = plotutil.Color(i), plotutil.Dashes(i/7), vg.Points(1.5)
		p.Add(line)
		p.Legend.Add(e.name, line)
	}
	return p.Save(plotWidth, plotHeight, path)
}

// rate draws the runs a second by callers.
func (r report) rate(path string) error {
	p := plot.New()
	p.Title.Text, p.Y.Label.Text = "Runs a second", "runs/s"
	p.Legend.Top = true
	width := vg.Points(12)
	for i, callers := range r.callers {
		values := make(plotter.Values, len(r.entries))
		for j, e := range r.entries {
			values[j] = median(e.perSecond[callers])
		}
		bars, err := plotter.NewBarChart(values, width)
		if err != nil {
			return err
		}
		bars.Color, bars.Offset = plotutil.Color(i), width*vg.Length(i)-width*vg.Length(len(r.callers)-1)/2
		p.Add(bars)
		p.Legend.Add(fmt.Sprintf("%d callers", callers), bars)
	}
	var names []string
	for _, e := range r.entries {
		names = append(names, strings.ReplaceAll(e.name, ": ", "\n"))
	}
	p.NominalX(names...)
	p.X.Min, p.X.Max = -0.5, float64(len(names))-0.5
	p.Y.Min, p.Y.Max = 0, p.Y.Max*1.15 // room for the legend
	return p.Save(plotWidth, plotHeight, path)
}
