package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/cli/present"
	"github.com/toolhost/toolhost/internal/text"
	"github.com/toolhost/toolhost/internal/tools/callargs"
	"github.com/toolhost/toolhost/internal/tools/config"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

// Levels of a finding.
const (
	levelOK   = "ok"
	levelWarn = "warn" // calls run, with less than they could have
	levelFail = "fail" // calls cannot run
)

// finding is one thing that doctor looked at.
type finding struct {
	Check  string `json:"check"`
	Level  string `json:"level"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"`
}

func newDoctor() *cobra.Command {
	var asJSON, ofFleet bool
	var flags remoteFlags
	cmd := &cobra.Command{
		Use: "doctor [flags]", Short: "Show what this machine offers, and remedies for what it lacks", Args: callargs.Words(0),
		Long: `Show what this machine offers, and remedies for what it lacks. Exit status 1 if
calls cannot run. The cgroupParent and the folders of the configuration count,
unless it has mistakes.

With --fleet, show the state of the configured fleet instead: its key and
certificate, and each worker as the daemon sees it.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if ofFleet {
				return diagnose(cmd.OutOrStdout(), examineFleet(cmd.Context(), flags), asJSON)
			}
			for _, name := range []string{"socket", "url", "token-file", "ca"} {
				if cmd.Flags().Changed(name) {
					return exit.Usagef("--%s is for --fleet: add that, or leave it out", name)
				}
			}
			loaded, err := config.Load(config.Options{Path: flags.config})
			if err != nil && flags.config != "" {
				return configError(err)
			}
			var findings []finding
			if err != nil { // this machine is looked at all the same
				loaded, findings = &config.Loaded{}, []finding{unusable(err)}
			}
			return diagnose(cmd.OutOrStdout(), append(findings, examine(loaded)...), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&ofFleet, "fleet", false, "look at the configured fleet, by way of the daemon that runs it")
	flags.register(cmd)
	return cmd
}

// unusable is of a configuration that other commands refuse: by its first mistake.
func unusable(err error) finding {
	return finding{"configuration", levelWarn, "not used: " + text.FirstLine(err.Error()), "see all that is wrong with: toolhost config validate"}
}

// diagnose prints the findings, and fails if calls cannot run.
func diagnose(w io.Writer, findings []finding, asJSON bool) error {
	if err := report(w, findings, asJSON); err != nil {
		return err
	}
	for _, f := range findings {
		if f.Level == levelFail {
			return exit.With(exit.Failed, nil)
		}
	}
	return nil
}

func examine(loaded *config.Loaded) []finding {
	findings := []finding{checkKernel(), checkMemfd(), checkState(loaded)}
	place := supervisor.Config{CgroupParent: loaded.Config.CgroupParent, RuntimeDir: loaded.Config.RuntimeDir, StoreDir: loaded.Config.StoreDir}
	host, err := newHost(place)
	if _, ok := errors.AsType[*cgroup.UnavailableError](err); ok {
		findings = append(findings, failure("cgroup", orWithout(err)))
		place.NoCgroup = true
		host, err = newHost(place)
	}
	if err != nil {
		return append(findings, failure("supervisor", err))
	}
	defer host.Close()
	found := host.Host()
	findings = append(findings, checkFeatures(found.Features)...)
	findings = append(findings, checkHost(host, found)...)
	return append(findings, checkNetwork(host, found.Features)...)
}

// minKernel is the first release with cgroup.kill.
var minKernel = [2]int{5, 14}

func checkKernel() finding {
	var u syscall.Utsname
	if err := syscall.Uname(&u); err != nil {
		return finding{"kernel", levelWarn, "cannot ask for its release: " + err.Error(), "allow uname(2) where toolhost runs, and see to it that Linux is 5.14 or newer"}
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

func checkRelease(release string) finding {
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil {
		return finding{"kernel", levelWarn, fmt.Sprintf("its release %q does not begin with a version", release), "see to it that Linux is 5.14 or newer, which has cgroup.kill"}
	}
	if major < minKernel[0] || major == minKernel[0] && minor < minKernel[1] {
		return finding{"kernel", levelFail, "Linux " + release + " has no cgroup.kill", "run Linux 5.14 or newer"}
	}
	return finding{"kernel", levelOK, "Linux " + release, ""}
}

// checkMemfd looks at what would keep the launcher from being executed.
func checkMemfd() finding {
	text, err := os.ReadFile("/proc/sys/vm/memfd_noexec")
	if value := strings.TrimSpace(string(text)); err == nil && value == "2" {
		return finding{"memfd", levelFail, "sysctl vm.memfd_noexec is 2: nothing can be executed from memory", "type as root: sysctl -w vm.memfd_noexec=1"}
	}
	return finding{"memfd", levelOK, "the launcher can be executed from sealed memory", ""}
}

// checkFeatures reports each part of the sandbox. Calls run without the
// optional parts and are refused without any other.
func checkFeatures(features []sandbox.Finding) []finding {
	var findings []finding
	for _, f := range features {
		found := finding{"sandbox " + f.Feature, levelOK, f.Use, ""}
		if f.State != sandbox.Yes {
			found.Level, found.Detail, found.Remedy = levelFail, f.Reason+" (it is for: "+f.Use+")", f.Remedy
			if f.Optional() {
				found.Level = levelWarn
			}
		}
		findings = append(findings, found)
	}
	return findings
}

func checkHost(host *supervisor.Supervisor, found supervisor.Host) []finding {
	if found.Cgroup == cgroup.ModeNone.String() {
		return []finding{checkTrial(host)}
	}
	findings := []finding{{"cgroup", levelOK, found.Cgroup + " at " + found.Place, ""}}
	for _, name := range []string{"memory", "pids", "cpu", "io"} {
		if host.Controller(name) {
			findings = append(findings, finding{"cgroup " + name, levelOK, "limits are enforced" + together[name], ""})
			continue
		}
		f := finding{"cgroup " + name, levelFail, "the controller is not available, and calls are limited in it by default", cgroup.ControllerRemedy(name)}
		if name == "io" {
			f.Level, f.Detail = levelWarn, "the controller is not available: io limits are refused"
		}
		findings = append(findings, f)
	}
	return append(findings, checkTrial(host))
}

// together says which quotas of identities need a controller, too.
var together = map[string]string{
	"memory": ", those of an identity's calls together, too (access: quota: memory)",
	"cpu":    ", those of an identity's calls together, too (access: quota: cpu)",
}

// checkTrial is the proof: a real call of a real command.
func checkTrial(host *supervisor.Supervisor) finding {
	self, err := ownPath()
	if err != nil {
		return failure("trial call", err)
	}
	result := host.Call(context.Background(), supervisor.Request{
		Command: &supervisor.Command{Argv: []string{self, "version"}},
		Timeout: 10 * time.Second,
	})
	if !result.OK() {
		detail, remedy := result.Message, "see to what is missing above"
		if said := text.FirstLine(result.Output.Stderr.Head); said != "" {
			detail += " It wrote: " + said
		}
		return finding{"trial call", levelFail, detail, remedy}
	}
	return finding{"trial call", levelOK, fmt.Sprintf("ran in %d ms, nothing left", result.Timing.ElapsedMs), ""}
}

// failure is of an error of ours, which says last, after a semicolon, what to do.
func failure(check string, err error) finding {
	detail, remedy, _ := strings.Cut(err.Error(), "; ")
	return finding{check, levelFail, detail, remedy}
}

func report(w io.Writer, findings []finding, asJSON bool) error {
	if asJSON {
		return present.JSON(w, findings, true)
	}
	for _, f := range findings {
		if _, err := fmt.Fprintf(w, "%-5s %-14s %s\n", f.Level, f.Check, f.Detail); err != nil {
			return err
		}
		if f.Remedy != "" {
			fmt.Fprintf(w, "%-20s remedy: %s\n", "", f.Remedy)
		}
	}
	return nil
}
