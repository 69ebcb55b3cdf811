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
	// daemon is what must serve meanwhile; nil for none.
	daemon []string
	// argv is executed for each run; where it is nil, ask is called instead.
	argv []string
	ask  func(ctx context.Context, n int) error
	// ready says whether the daemon serves.
	ready func(ctx context.Context) error
}

// peer is another project's program, found on PATH.
type peer struct {
	program, isolation string
	// argv makes the command line, with what it needs in dir.
	argv func(program, dir string) ([]string, error)
}

func fixed(words ...string) func(string, string) ([]string, error) {
	return func(program, _ string) ([]string, error) { return append([]string{program}, words...), nil }
}

// peers are run where they are present. Each is given the isolation that its own
// documentation begins with for a command without network.
var peers = []peer{
	{"bwrap", "all namespaces, / read-only; no seccomp filter, no limits", fixed("--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "true")},
	{"runc", "all namespaces, cgroup, capabilities; no seccomp filter, no limits", bundle},
	{"crun", "all namespaces, cgroup, capabilities; no seccomp filter, no limits", bundle},
	{"firejail", "namespaces, no network, seccomp filter, capabilities dropped", fixed("--quiet", "--noprofile", "--net=none", "--seccomp", "--caps.drop=all", "true")},
	{"nsjail", "all namespaces, rlimits; no cgroup", fixed("-Mo", "-Q", "--chroot", "/", "--", "/bin/true")},
	{"minijail0", "pid, mount, network, ipc namespaces, no new privileges", fixed("-p", "-v", "-r", "-e", "-l", "-n", "--", "/bin/true")},
	{"landrun", "Landlock only", fixed("--rox", "/usr", "--rox", "/lib", "--rox", "/lib64", "--", "/bin/true")},
	{"srt", "sandbox-runtime: bwrap, proxies for the network", fixed("true")},
}

// found are the peers of this machine, missing the names of the others.
func found(dir string) (list []contestant, missing []string, err error) {
	for _, p := range peers {
		program, err := exec.LookPath(p.program)
		if err != nil {
			missing = append(missing, p.program)
			continue
		}
		argv, err := p.argv(program, dir)
		if err != nil {
			return nil, nil, err
		}
		list = append(list, contestant{name: p.program, isolation: p.isolation, argv: argv})
	}
	return list, missing, nil
}

// bundle makes an OCI bundle whose root shows /usr of this machine.
func bundle(program, dir string) ([]string, error) {
	name := filepath.Base(program)
	at := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Join(at, "rootfs"), 0o755); err != nil {
		return nil, err
	}
	spec := exec.Command(program, "spec")
	spec.Dir = at
	if out, err := spec.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s spec: %w: %s", name, err, out)
	}
	file := filepath.Join(at, "config.json")
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var config map[string]any
	if err := json.Unmarshal(raw, &config); err != nil {
		return nil, err
	}
	process := config["process"].(map[string]any)
	process["terminal"], process["args"] = false, []string{"/usr/bin/true"}
	mounts := config["mounts"].([]any)
	for _, path := range []string{"/usr", "/lib", "/lib64"} {
		mounts = append(mounts, map[string]any{"destination": path, "type": "none", "source": path, "options": []string{"rbind", "ro"}})
	}
	config["mounts"] = mounts
	if raw, err = json.Marshal(config); err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, raw, 0o644); err != nil {
		return nil, err
	}
	// The id is put behind it for each run.
	return []string{program, "--root", filepath.Join(at, "state"), "run", "--bundle", at}, nil
}
