// Command vm runs packages' tests, or benchmarks, on a real cgroup v2 kernel, in a small virtual machine.
//
//	go run ./internal/testenv/vm [flags] PACKAGE...
//
// With -system it is a small Debian with systemd in which they run, made by debootstrap once (system.go).
//
// It takes Debian's cloud kernel, packs a static init and the static test binaries into an initramfs, boots them in QEMU
// without KVM, shows the guest's console, and succeeds only if every package ran to its end, none failed, and in each at
// least one test passed. It needs a Debian host with qemu-system-x86_64; see kernel.go for where the kernel comes from.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

type options struct {
	packages []string
	run      string
	skip     string
	bench    string
	times    string
	kernel   string
	system   bool
	boot     string
	memory   int // MiB
	cpus     int
	each     time.Duration // for each package
	all      time.Duration // for the whole run, building included
	env      list
	add      list
}

// list is a flag that may be given several times.
type list []string

func (l *list) String() string     { return strings.Join(*l, " ") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "vm:", err)
		os.Exit(1)
	}
}

func run() error {
	o, err := parse(os.Args[1:])
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, o.all, fmt.Errorf("time limit of %v (-all) is over", o.all))
	defer cancel()
	err = testInVM(ctx, o)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return errors.Join(cause, err)
	}
	return err
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("vm", flag.ExitOnError)
	flags.StringVar(&o.run, "run", "", "run only the tests that match this `pattern`")
	flags.StringVar(&o.skip, "skip", "", "leave out the tests that match this `pattern`")
	flags.StringVar(&o.bench, "bench", "", "run the benchmarks that match this `pattern`, and no tests")
	flags.StringVar(&o.times, "benchtime", "", "how long, or how `often`, each benchmark runs")
	flags.StringVar(&o.kernel, "kernel", "", "boot this vmlinuz `file` instead of Debian's")
	flags.BoolVar(&o.system, "system", false, "run the tests as root of a small Debian with systemd, instead of nothing but them")
	flags.StringVar(&o.boot, "boot", "", "`words` for the kernel's command line")
	flags.IntVar(&o.memory, "memory", 2048, "the guest's memory in `MiB`")
	flags.IntVar(&o.cpus, "cpus", 2, "the guest's processors")
	flags.DurationVar(&o.each, "each", 5*time.Minute, "time limit for each package")
	flags.DurationVar(&o.all, "all", 15*time.Minute, "time limit for the whole run")
	flags.Var(&o.env, "env", "`NAME=VALUE` for the tests' environment; may be repeated")
	flags.Var(&o.add, "add", "`FILE=DEST` puts a host's file into the guest; may be repeated")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.packages = flags.Args()
	if len(o.packages) == 0 {
		return o, errors.New("name at least one package, such as ./cgroup")
	}
	return o, nil
}

func testInVM(ctx context.Context, o options) error {
	qemu, err := findQEMU()
	if err != nil {
		return err
	}
	if o.kernel == "" {
		if o.kernel, err = debianKernel(ctx); err != nil {
			return fmt.Errorf("cannot get a kernel: %w", err)
		}
	}
	dir, err := os.MkdirTemp("", "toolhost-vm-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	image, err := buildImage(ctx, dir, o)
	if err != nil {
		return fmt.Errorf("cannot build the guest's image: %w", err)
	}
	report, err := boot(ctx, qemu, image, o)
	if err != nil {
		return fmt.Errorf("cannot run the guest: %w", err)
	}
	if o.bench != "" {
		fmt.Println("vm: the times above are an emulated machine's and mean nothing; a ratio within one run shows what the kernel adds, no more")
	}
	return conclude(report, o.packages)
}
