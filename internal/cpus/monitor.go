package cpus

import (
	"os"
	"sync"
)

// The runtime has a thread that looks after the others, its monitor (sysmon). While
// anything runs it sleeps for 20 µs at a time, which the slack of its timers (50 µs unless
// set, PR_SET_TIMERSLACK(2const)) makes 70. Where there is one processor, each time it
// wakes it stops the thread that has work to do; and its own work, to hand on the processor
// of a goroutine that blocks in a system call, can wait for a millisecond.
const (
	usualSlack = "0"       // what the thread began with
	longSlack  = "1000000" // ns
)

// monitor is the file of the monitor's slack, or nil. It is the first thread that the
// runtime makes, and the kernel lists threads by age. To set its slack takes CAP_SYS_NICE.
var monitor = sync.OnceValue(func() *os.File {
	dir, err := os.Open("/proc/self/task")
	if err != nil {
		return nil
	}
	defer dir.Close()
	threads, _ := dir.Readdirnames(2)
	if len(threads) < 2 {
		return nil
	}
	file, err := os.OpenFile("/proc/"+threads[1]+"/timerslack_ns", os.O_WRONLY, 0)
	if err != nil {
		return nil
	}
	return file
})

// slacken sets the slack of the monitor's timers where it may.
func slacken(slack string) {
	if file := monitor(); file != nil {
		_, _ = file.WriteString(slack)
	}
}
