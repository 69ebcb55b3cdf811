// Command peers runs a command that does nothing through toolhost and through each
// peer that is on PATH, in turn in one run, and writes what it took as Markdown and
// SVG. `make bench-peers` runs it as root; docs/performance.md is made of it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/toolhost/toolhost/cgroup"
)

// options of a run.
type options struct {
	bin, out      string
	rounds, block int
	paced         int
	callers       []int
	each          time.Duration
}

func main() {
	o := options{callers: []int{1, 8, 64}}
	flag.StringVar(&o.bin, "bin", "bin", "folder of toolhost's commands and example tools")
	flag.StringVar(&o.out, "out", "bench/results", "folder for the report")
	flag.IntVar(&o.rounds, "rounds", 5, "how often each contestant has its turn")
	flag.IntVar(&o.block, "block", 40, "runs in a turn")
	flag.IntVar(&o.paced, "paced", 10, "runs in a turn that come behind a rest each")
	flag.DurationVar(&o.each, "each", 2*time.Second, "how long each number of callers is tried")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	if o.bin, err = filepath.Abs(o.bin); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "peers")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	own, err := ours(o.bin, dir)
	if err != nil {
		return err
	}
	others, missing, err := found(dir)
	if err != nil {
		return err
	}
	groups, err := cgroup.Open(ctx, cgroup.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, groups.Close()) }()
	race := &race{options: o, groups: groups}
	defer func() { err = errors.Join(err, race.close()) }()
	if err := race.enter(ctx, append(own, others...)); err != nil {
		return err
	}
	if err := race.run(ctx); err != nil {
		return err
	}
	return report{race, missing}.write(o.out)
}
