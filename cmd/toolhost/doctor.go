package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/internal/cli/cmdline"
	"github.com/toolhost/toolhost/internal/cli/doctor"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/text"
	"github.com/toolhost/toolhost/internal/tools/config"
)

func newDoctor() *cobra.Command {
	var asJSON, ofFleet bool
	var flags remoteFlags
	cmd := &cobra.Command{
		Use: "doctor [flags]", Short: "Show what this machine offers, and remedies for what it lacks", Args: cmdline.Words(0),
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
			var findings []doctor.Finding
			if err != nil { // this machine is looked at all the same
				loaded = &config.Loaded{}
				findings = append(findings, doctor.Warn("configuration", "not used: "+text.FirstLine(err.Error()), "see all that is wrong with: toolhost config validate"))
			}
			program := doctor.Program{Path: ownPath, WithoutCgroup: orWithout}
			return diagnose(cmd.OutOrStdout(), append(findings, program.Examine(loaded)...), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&ofFleet, "fleet", false, "look at the configured fleet, by way of the daemon that runs it")
	flags.register(cmd)
	return cmd
}

// diagnose prints the findings, and fails if calls cannot run.
func diagnose(w io.Writer, findings []doctor.Finding, asJSON bool) error {
	if err := doctor.Print(w, findings, asJSON); err != nil {
		return err
	}
	if doctor.Failed(findings) {
		return exit.With(exit.Failed, nil)
	}
	return nil
}
