package engine

import _ "unsafe" // for go:linkname

// procStatFile is where package server/pse of nats-server reads how much CPU time the
// process has used: every second from its init on, in each program that has it, for figures
// that are not served here. Ten times what a call costs that only waits. Without the file it
// stops.
//
//go:linkname procStatFile github.com/nats-io/nats-server/v2/server/pse.procStatFile
var procStatFile string

// The server's timer is some time away, which the race detector cannot know.
//
//go:norace
func init() { procStatFile = "" }
