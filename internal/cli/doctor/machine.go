package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/internal/text"
	"github.com/toolhost/toolhost/internal/tools/config"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

// Program is the program that examines its machine.
type Program struct {
	// Path finds its file: calls of its command version are made for a trial.
	Path func() (string, error)
	// WithoutCgroup adds to an error how the program does without cgroups.
	WithoutCgroup func(error) error
}

// Examine looks at this machine as a configuration has calls made on it.
func (p Program) Examine(loaded *config.Loaded) []Finding {
	findings := []Finding{checkKernel(), checkMemfd(), checkState(loaded)}
	ctx := context.Background()
	place := supervisor.Config{CgroupParent: loaded.Config.CgroupParent, RuntimeDir: loaded.Config.RuntimeDir, StoreDir: loaded.Config.StoreDir}
	host, err := supervisor.New(ctx, place)
	if _, ok := errors.AsType[*cgroup.UnavailableError](err); ok {
		findings = append(findings, FailOf("cgroup", p.WithoutCgroup(err)))
		place.NoCgroup = true
		host, err = supervisor.New(ctx, place)
	}
	if err != nil {
		return append(findings, FailOf("supervisor", err))
	}
	defer host.Close()
	found := host.Host()
	findings = append(findings, checkFeatures(found.Features)...)
	findings = append(findings, checkCgroup(host, found)...)
	findings = append(findings, p.checkTrial(host))
	return append(findings, p.checkNetwork(host, found.Features)...)
}

// minKernel is the first release with cgroup.kill.
var minKernel = [2]int{5, 14}

func checkKernel() Finding {
	var u syscall.Utsname
	if err := syscall.Uname(&u); err != nil {
		return Warn("kernel", "cannot ask for its release: "+err.Error(), "allow uname(2) where toolhost runs, and see to it that Linux is 5.14 or newer")
	}
	var release strings.Builder
	for _, c := range u.Release {
		if c == 0 {
			break
		}
		release.WriteByte(byte(c))
	}
	return checkRelease(release.String())
}

func checkRelease(release string) Finding {
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil {
		return Warn("kernel", fmt.Sprintf("its release %q does not begin with a version", release), "see to it that Linux is 5.14 or newer, which has cgroup.kill")
	}
	if major < minKernel[0] || major == minKernel[0] && minor < minKernel[1] {
		return Fail("kernel", "Linux "+release+" has no cgroup.kill", "run Linux 5.14 or newer")
	}
	return OK("kernel", "Linux "+release)
}

// checkMemfd looks at what would keep the launcher from being executed.
func checkMemfd() Finding {
	text, err := os.ReadFile("/proc/sys/vm/memfd_noexec")
	if value := strings.TrimSpace(string(text)); err == nil && value == "2" {
		return Fail("memfd", "sysctl vm.memfd_noexec is 2: nothing can be executed from memory", "type as root: sysctl -w vm.memfd_noexec=1")
	}
	return OK("memfd", "the launcher can be executed from sealed memory")
}

// checkFeatures reports each part of the sandbox. Calls run without the
// optional parts and are refused without any other.
func checkFeatures(features []sandbox.Finding) (findings []Finding) {
	for _, f := range features {
		found := OK("sandbox "+f.Feature, f.Use)
		if f.State != sandbox.Yes {
			found = Fail(found.Check, f.Reason+" (it is for: "+f.Use+")", f.Remedy)
			if f.Optional() {
				found.Level = LevelWarn
			}
		}
		findings = append(findings, found)
	}
	return findings
}

func checkCgroup(host *supervisor.Supervisor, found supervisor.Host) []Finding {
	if found.Cgroup == cgroup.ModeNone.String() {
		return nil
	}
	findings := []Finding{OK("cgroup", found.Cgroup+" at "+found.Place)}
	for _, name := range []string{"memory", "pids", "cpu", "io"} {
		check := "cgroup " + name
		switch {
		case host.Controller(name):
			findings = append(findings, OK(check, "limits are enforced"+together[name]))
		case name == "io":
			findings = append(findings, Warn(check, "the controller is not available: io limits are refused", cgroup.ControllerRemedy(name)))
		default:
			findings = append(findings, Fail(check, "the controller is not available, and calls are limited in it by default", cgroup.ControllerRemedy(name)))
		}
	}
	return findings
}

// together says which quotas of identities need a controller, too.
var together = map[string]string{
	"memory": ", those of an identity's calls together, too (access: quota: memory)",
	"cpu":    ", those of an identity's calls together, too (access: quota: cpu)",
}

// checkTrial is the proof: a real call of a real command.
func (p Program) checkTrial(host *supervisor.Supervisor) Finding {
	const check = "trial call"
	result, err := p.try(host, nil)
	if err != nil {
		return FailOf(check, err)
	}
	if !result.OK() {
		detail := result.Message
		if said := text.FirstLine(result.Output.Stderr.Head); said != "" {
			detail += " It wrote: " + said
		}
		return Fail(check, detail, "see to what is missing above")
	}
	return OK(check, fmt.Sprintf("ran in %d ms, nothing left", result.Timing.ElapsedMs))
}

// try makes a call that does nothing.
func (p Program) try(host *supervisor.Supervisor, policy *supervisor.Policy) (*api.Result, error) {
	self, err := p.Path()
	if err != nil {
		return nil, err
	}
	return host.Call(context.Background(), supervisor.Request{
		Command: &supervisor.Command{Argv: []string{self, "version"}}, Timeout: 10 * time.Second, Sandbox: policy,
	}), nil
}
