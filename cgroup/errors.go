package cgroup

import (
	"errors"
	"fmt"
)

// ErrRemoved is returned by methods of a Group after Remove, and of a Root
// after Close.
var ErrRemoved = errors.New("cgroup was removed")

// UnavailableError says that no place for cgroups could be found or made, and
// how to get one. Its message is one line.
type UnavailableError struct {
	Thing  string // what was tried, e.g. "cgroup2 directory"
	Value  string // the path or name that it was tried on
	Remedy string // what the admin can do
	Err    error  // the cause, often an errno; may be nil
}

func (e *UnavailableError) Error() string {
	cause := ""
	if e.Err != nil {
		cause = ": " + e.Err.Error()
	}
	return fmt.Sprintf("cannot use cgroups: %s %q%s; %s", e.Thing, e.Value, cause, e.Remedy)
}

func (e *UnavailableError) Unwrap() error { return e.Err }

// ControllerError means that a limit needs a controller, or a file of it, that is
// missing. Nothing was created. Its message is one line.
type ControllerError struct {
	Controller string // cpu, memory, pids or io
	Limit      string // the field of Limits that needs it
	Missing    string // the file, or "" for the whole controller
	Remedy     string
}

func (e *ControllerError) Error() string {
	missing := "the controller is not available here"
	if e.Missing != "" {
		missing = "it has no file " + e.Missing
	}
	return fmt.Sprintf("cannot enforce limit %s with cgroup controller %q: %s; %s", e.Limit, e.Controller, missing, e.Remedy)
}
