package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// contestant runs a command that does nothing, once for each call of run.
type contestant struct {
	name string
	ours bool
	// isolation says what the command is held by, in the words of its own project.
	isolation string
	// daemon is what must serve meanwhile, in a cgroup of this path; nil for none.
	// left removes what it leaves of cgroups.
	daemon func(group string) []string
	left   func(group string) error
	// ready says whether the daemon serves.
	ready func(ctx context.Context) error
	// run is one run, the n-th of all; execute starts a program where what it uses
	// is counted, and waits for it.
	run func(ctx context.Context, n int, execute execute) error
	// begin and end come before all its runs and behind them; nil for nothing.
	begin, end func() error
	// paced has it run after a rest as well. await waits, before each run that is
	// timed, for what it needs.
	paced bool
	await func(ctx context.Context) error
}

type execute func(argv ...string) error

// command is a contestant that is executed for each run.
func command(name, isolation string, argv ...string) contestant {
	return contestant{name: name, isolation: isolation, run: func(_ context.Context, _ int, execute execute) error { return execute(argv...) }}
}

// peer is another project's program, found on PATH.
type peer struct {
	program, isolation string
	// enter makes the contestant, with what it needs in dir.
	enter func(c contestant, program, dir string) (contestant, error)
}

func fixed(words ...string) func(contestant, string, string) (contestant, error) {
	return func(c contestant, program, _ string) (contestant, error) {
		return command(c.name, c.isolation, append([]string{program}, words...)...), nil
	}
}

// peers are run where they are present. Each is given the isolation that its own
// documentation begins with for a command without network.
var peers = []peer{
	{"go-judge", "namespaces, minimal root, cgroup with limits, one container for run after run; no seccomp filter", judge},
	{"bwrap", "all namespaces, / read-only; no seccomp filter, no limits", fixed("--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "true")},
	{"runc", "all namespaces, cgroup, capabilities; no seccomp filter, no limits", bundle},
	{"crun", "all namespaces, cgroup, capabilities; no seccomp filter, no limits", bundle},
	{"firejail", "namespaces, no network, seccomp filter, capabilities dropped", fixed("--quiet", "--noprofile", "--net=none", "--seccomp", "--caps.drop=all", "true")},
	{"nsjail", "all namespaces, rlimits; no cgroup", fixed("-Mo", "-Q", "--chroot", "/", "--", "/bin/true")},
	{"isolate", "namespaces, minimal root, own user, rlimits, some system calls refused; a box is made before; no cgroup", boxes},
	{"minijail0", "pid, mount, network, ipc namespaces, no new privileges", fixed("-p", "-v", "-r", "-e", "-l", "-n", "--", "/bin/true")},
	{"landrun", "Landlock only", fixed("--rox", "/usr", "--rox", "/lib", "--rox", "/lib64", "--", "/bin/true")},
	{"srt", "sandbox-runtime: bwrap, proxies for the network", fixed("true")},
	{"codex", "its sandbox: bwrap with / read-only, no network, seccomp filter; no limits", fixed("sandbox", "--", "/bin/true")},
}

// found are the peers of this machine, missing the names of the others.
func found(dir string) (list []contestant, missing []string, err error) {
	for _, p := range peers {
		program, err := exec.LookPath(p.program)
		if err != nil {
			missing = append(missing, p.program)
			continue
		}
		c, err := p.enter(contestant{name: p.program, isolation: p.isolation}, program, dir)
		if err != nil {
			return nil, nil, err
		}
		list = append(list, c)
	}
	return list, missing, nil
}

// bundle makes an OCI bundle whose root shows /usr of this machine.
func bundle(c contestant, program, dir string) (contestant, error) {
	at := filepath.Join(dir, c.name)
	if err := os.MkdirAll(filepath.Join(at, "rootfs"), 0o755); err != nil {
		return c, err
	}
	spec := exec.Command(program, "spec")
	spec.Dir = at
	if out, err := spec.CombinedOutput(); err != nil {
		return c, fmt.Errorf("%s spec: %w: %s", c.name, err, out)
	}
	file := filepath.Join(at, "config.json")
	raw, err := os.ReadFile(file)
	if err != nil {
		return c, err
	}
	var config map[string]any
	if err := json.Unmarshal(raw, &config); err != nil {
		return c, err
	}
	process := config["process"].(map[string]any)
	process["terminal"], process["args"] = false, []string{"/usr/bin/true"}
	mounts := config["mounts"].([]any)
	for _, path := range []string{"/usr", "/lib", "/lib64"} {
		mounts = append(mounts, map[string]any{"destination": path, "type": "none", "source": path, "options": []string{"rbind", "ro"}})
	}
	config["mounts"] = mounts
	if raw, err = json.Marshal(config); err != nil {
		return c, err
	}
	c.run = func(_ context.Context, n int, execute execute) error {
		return execute(program, "--root", filepath.Join(at, "state"), "run", "--bundle", at, fmt.Sprintf("peer-%d-%d", os.Getpid(), n))
	}
	return c, os.WriteFile(file, raw, 0o644)
}
