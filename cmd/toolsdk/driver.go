package main

import (
	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/internal/conformance"
)

const driverCommand = "conformance-driver"

// newDriver is started by a supervisor for `toolsdk test`, never by people.
func newDriver() *cobra.Command {
	return &cobra.Command{
		Use: driverCommand, Short: "The driver of toolsdk test", Hidden: true, Args: cobra.NoArgs,
		Run: func(*cobra.Command, []string) { conformance.ServeDriver() },
	}
}
