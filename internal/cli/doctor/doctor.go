// Package doctor looks at what this machine offers for calls, and says how what it lacks
// can be had.
package doctor

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/internal/cli/present"
)

// Levels of a finding.
const (
	LevelOK   = "ok"
	LevelWarn = "warn" // calls run, with less than they could have
	LevelFail = "fail" // calls cannot run
)

// Finding is one thing that was looked at.
type Finding struct {
	Check  string `json:"check"`
	Level  string `json:"level"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"`
}

// OK is of what is as it should be.
func OK(check, detail string) Finding { return Finding{check, LevelOK, detail, ""} }

// Warn is of what calls can do without.
func Warn(check, detail, remedy string) Finding { return Finding{check, LevelWarn, detail, remedy} }

// Fail is of what calls cannot run without.
func Fail(check, detail, remedy string) Finding { return Finding{check, LevelFail, detail, remedy} }

// FailOf is of an error of ours, which says last, after a semicolon, what to do.
func FailOf(check string, err error) Finding {
	detail, remedy, _ := strings.Cut(err.Error(), "; ")
	return Fail(check, detail, remedy)
}

// Failed says whether calls cannot run.
func Failed(findings []Finding) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Level == LevelFail })
}

// Print shows findings to people, or as JSON.
func Print(w io.Writer, findings []Finding, asJSON bool) error {
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
