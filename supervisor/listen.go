package supervisor

import (
	"syscall"

	"github.com/toolhost/toolhost/supervisor/internal/kept"
	"github.com/toolhost/toolhost/supervisor/internal/process"
)

var _ kept.Caller = (*Call)(nil)

// Output takes what the call's processes write.
func (c *Call) Output(from process.Source, p []byte) error {
	switch from {
	case process.CommandStdout:
		return c.commandStdout(p)
	case process.Stderr:
		return c.toolStderr(p)
	}
	return c.toolStdout(p)
}

// OutputEnded comes after the last of it.
func (c *Call) OutputEnded(from process.Source) {
	switch from {
	case process.CommandStdout:
		c.endStdout()
	case process.Stderr:
		c.output.stderrVeil.End(c.passStderr)
	case process.AllOutput:
		c.send(input{kind: inOutputEnded})
	}
}

// Late says that what the tool sends is not held up.
func (c *Call) Late() bool { return c.ending.Load() }

// Exited is the end of the tool's own process.
func (c *Call) Exited(status syscall.WaitStatus) { c.send(input{kind: inExited, exit: status}) }

// OutOfMemory says that the memory limit has ended processes.
func (c *Call) OutOfMemory() { c.send(input{kind: inOOM}) }

// Collateral says that another call ends the processes.
func (c *Call) Collateral() { c.send(input{kind: inCollateral}) }
