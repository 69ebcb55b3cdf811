// Command init is PID 1 of the kernel test VM. It sets up a small, sane system on cgroup v2, or starts the systemd that is
// packed with it, runs each packed test binary, prints the result lines of package protocol, and powers the machine off.
package main

import (
	"fmt"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "runner" {
		run("run the tests", runJob)
		return
	}
	defer powerOff()
	if _, err := os.Stat(systemd); err == nil {
		run("start systemd", startSystem)
		return
	}
	if run("set the machine up", setUp) {
		run("reap", superviseRunner)
	}
}

// systemd is there if the guest has a whole system.
const systemd = "/usr/lib/systemd/systemd"

func startSystem() error {
	if err := leaveRootfs(); err != nil {
		return err
	}
	return unix.Exec(systemd, []string{systemd}, []string{"PATH=/usr/sbin:/usr/bin"})
}

func run(what string, step func() error) bool {
	if err := step(); err != nil {
		fmt.Printf("\ninit: cannot %s: %v\n", what, err)
		return false
	}
	return true
}

// superviseRunner leaves the tests to a child, so that PID 1 can reap every orphan without stealing exit statuses.
func superviseRunner() error {
	runner := exec.Command("/proc/self/exe", "runner")
	runner.Stdin, runner.Stdout, runner.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := runner.Start(); err != nil {
		return err
	}
	for {
		pid, err := unix.Wait4(-1, nil, 0, nil)
		if err != nil && err != unix.EINTR {
			return err
		}
		if pid == runner.Process.Pid {
			return nil
		}
	}
}

func powerOff() {
	unix.Sync()
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF); err != nil {
		fmt.Println("init: cannot power off:", err)
	}
}
